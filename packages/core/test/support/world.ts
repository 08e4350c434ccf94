import type { Clock, TimerHandle } from '../../src/time/clock.ts'

interface Timer {
  readonly at: number
  readonly run: () => void
}

/** A multiple of a minute, so that intervals that divide a minute begin with the world. */
export const EPOCH = 1_800_000_000_000

/**
 * Time that passes only when tests let it pass. Each process gets a clock of its own, whose wall clock may be wrong. As in Node.js, timers
 * fire in order, after whole milliseconds and at least one.
 */
export class World {
  /** Milliseconds since the world began. */
  time = 0
  readonly #timers = new Set<Timer>()
  #deferred: (() => void)[] = []

  /** A process's clock. */
  clock({ offset = 0, origin = 5_000 }: { offset?: number; origin?: number } = {}): WorldClock {
    return new WorldClock(this, offset, origin)
  }

  /** Lets time pass. Timers fire, and promises settle in between. */
  async run(milliseconds: number): Promise<void> {
    const end = this.time + milliseconds
    await this.settle()
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next)
      if (next.at > this.time) this.time = next.at
      next.run()
      await this.settle()
    }
    this.time = end
    await this.settle()
  }

  /** Runs to this many milliseconds after the world began. */
  async runTo(time: number): Promise<void> {
    await this.run(time - this.time)
  }

  /** Lets time pass while the event loop is blocked: no timer fires and no promise settles. */
  stall(milliseconds: number): void {
    this.time += milliseconds
  }

  /** Lets everything settle that needs no time. */
  async settle(): Promise<void> {
    for (;;) {
      for (let turn = 0; turn < 12; turn++) await undefined
      if (this.#deferred.length === 0) return
      for (const run of this.#deferred.splice(0)) run()
    }
  }

  setTimer(run: () => void, delay: number): Timer {
    const timer = { at: this.time + Math.max(1, Math.trunc(delay)), run }
    this.#timers.add(timer)
    return timer
  }

  clearTimer(timer: Timer): boolean {
    return this.#timers.delete(timer)
  }

  defer(run: () => void): void {
    this.#deferred.push(run)
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers) if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer
    return first
  }
}

/** A process's view of the world. */
export class WorldClock implements Clock {
  /** Timers that have not fired yet. */
  outstanding = 0
  /** Number of timers that were ever set. */
  timersSet = 0
  /** Number of timers that have fired. */
  timersFired = 0
  /** Milliseconds by which the wall clock is ahead. Tests may change it at any time. */
  offset: number
  readonly #world: World
  readonly #origin: number

  constructor(world: World, offset: number, origin: number) {
    this.#world = world
    this.offset = offset
    this.#origin = origin
  }

  now(): number {
    return Math.floor(EPOCH + this.#world.time + this.offset)
  }

  monotonic(): number {
    return this.#origin + this.#world.time
  }

  setTimeout(callback: () => void, delay: number): TimerHandle {
    this.outstanding++
    this.timersSet++
    return this.#world.setTimer(() => {
      this.outstanding--
      this.timersFired++
      callback()
    }, delay)
  }

  clearTimeout(handle: TimerHandle): void {
    if (this.#world.clearTimer(handle as Timer)) this.outstanding--
  }

  defer(callback: () => void): void {
    this.#world.defer(callback)
  }
}
