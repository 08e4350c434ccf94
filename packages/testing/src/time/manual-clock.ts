import { type Clock, type Duration, parseDuration, type TimerHandle } from '@weir/core'
import { checkOptions } from '@weir/core/sync'
import type { QueuedEvent } from './event-queue.ts'
import { VirtualTime } from './virtual-time.ts'

/** Describes how one machine's clocks differ from true time. */
export interface NodeClockOptions {
  /**
   * Sets how many milliseconds the wall clock is ahead of true time.
   *
   * @default 0
   */
  readonly offset?: number
  /**
   * Makes the clock run faster by this fraction: 1e-4 gains 0.1 ms each second.
   *
   * @default 0
   */
  readonly drift?: number
  /**
   * Rounds the wall clock to multiples of this many milliseconds, as `Date.now` does. 0 is exact.
   *
   * @default 1
   */
  readonly resolution?: number
  /**
   * Sets the time of the monotonic clock at the start, in milliseconds.
   *
   * @default 0
   */
  readonly origin?: number
}

const OPTIONS = ['offset', 'drift', 'resolution', 'origin']

/**
 * One machine's view of virtual time: a wall clock that may be wrong, run too fast and step, a monotonic clock that never steps,
 * and timers that follow the machine's own speed.
 */
export class NodeClock implements Clock {
  readonly #time: VirtualTime
  readonly #rate: number
  readonly #resolution: number
  readonly #origin: number
  readonly #begin: number
  readonly #timers = new Set<QueuedEvent>()
  #wallOffset: number
  #stalledUntil = Number.NEGATIVE_INFINITY
  /** Callbacks that wait for the end of a freeze. Undefined unless the machine is frozen. */
  #frozen: (() => void)[] | undefined
  #stopped = false
  #events = 0

  constructor(time: VirtualTime, options: NodeClockOptions = {}) {
    checkOptions('manualClock', options, OPTIONS, 'options such as { offset: 1000 }')
    this.#time = time
    this.#rate = 1 + (options.drift ?? 0)
    this.#resolution = options.resolution ?? 1
    this.#origin = options.origin ?? 0
    this.#begin = time.now
    this.#wallOffset = time.epoch + time.now + (options.offset ?? 0) - this.#origin
  }

  now(): number {
    const exact = this.monotonic() + this.#wallOffset
    return this.#resolution === 0 ? exact : Math.floor(exact / this.#resolution) * this.#resolution
  }

  monotonic(): number {
    return (this.#time.now - this.#begin) * this.#rate + this.#origin
  }

  setTimeout(callback: () => void, delay: number): TimerHandle {
    // Timers of Node.js never fire in the same turn. Their shortest delay is 1 ms.
    return this.#plan(this.#time.now + Math.max(1, delay) / this.#rate, callback)
  }

  clearTimeout(handle: TimerHandle): void {
    const event = handle as QueuedEvent | undefined
    // Like Node.js, it ignores a missing timer.
    if (event === undefined) return
    this.#time.cancel(event)
    this.#timers.delete(event)
  }

  defer(callback: () => void): void {
    this.#plan(this.#time.now, callback)
  }

  /** Steps the wall clock by this many milliseconds, forwards or back. The monotonic clock and timers are not affected. */
  step(milliseconds: number): void {
    this.#events++
    this.#wallOffset += milliseconds
  }

  /** Blocks this machine's event loop until a moment of virtual time. Timers and messages wait. */
  stall(until: number): void {
    this.#stalledUntil = until
  }

  /** Freezes this machine until `thaw`, like a function between two requests. Timers and messages wait. */
  freeze(): void {
    this.#frozen ??= []
  }

  /** Continues. Whatever became due meanwhile runs now, in its order. */
  thaw(): void {
    const waiting = this.#frozen ?? []
    this.#frozen = undefined
    for (const run of waiting) run()
  }

  /** Runs a callback for a message that arrives at this machine: immediately, or when its event loop is free again. */
  dispatch(run: () => void, settles = true): void {
    if (this.#stopped) return
    if (this.#frozen !== undefined) this.#frozen.push(() => this.dispatch(run, settles))
    else if (this.#time.now < this.#stalledUntil) this.#time.at(this.#stalledUntil, () => this.dispatch(run, settles), settles)
    else {
      this.#events++
      run()
    }
  }

  /** Grows with every event of this machine except requests. While it stays the same, only time has passed. */
  get events(): number {
    return this.#events
  }

  /** The time until which the machine's event loop is blocked. If it is not blocked, some moment of the past. */
  get stalledUntil(): number {
    return this.#stalledUntil
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** Stops the machine: none of its timers will fire, and nothing arrives any more. */
  stop(): void {
    this.#stopped = true
    for (const event of this.#timers) this.#time.cancel(event)
    this.#timers.clear()
  }

  #plan(at: number, callback: () => void): QueuedEvent {
    const event = this.#time.at(at, () => {
      this.#timers.delete(event)
      this.dispatch(callback)
    })
    if (this.#stopped) this.#time.cancel(event)
    else this.#timers.add(event)
    return event
  }
}

/** A clock for unit tests: a `Clock` to inject, and methods that let time pass. */
export class ManualClock extends NodeClock {
  /** The time line, for further clocks (`new NodeClock(clock.time, …)`) and a simulated store. */
  readonly time: VirtualTime

  constructor(time: VirtualTime, options?: NodeClockOptions) {
    super(time, options)
    this.time = time
  }

  /** Defers a callback to a later turn. It needs no time, so that `await throttler.close()` ends by itself. */
  override defer(callback: () => void): void {
    let ran = false
    const once = (): void => {
      if (ran) return
      ran = true
      callback()
    }
    super.defer(once)
    setImmediate(() => this.dispatch(once))
  }

  /**
   * Lets time pass, in milliseconds or as a text such as `'1m'`. Timers fire in order, and promises settle in between.
   *
   * @throws (rejects) WeirError `WEIR_INVALID_OPTION`
   */
  async advance(duration: Duration): Promise<void> {
    await this.time.runUntil(this.time.now + parseDuration(duration, 'duration', 0, Number.MAX_SAFE_INTEGER))
  }
}

/**
 * Makes a clock that moves only when you call `advance`.
 *
 * @example
 * const clock = manualClock()
 * const throttler = createThrottler({ clock, policies: [{ limit: 2, interval: '1s' }] })
 * throttler.check('a') // counted
 * await clock.advance(1000) // the next interval
 */
export function manualClock(options?: NodeClockOptions): ManualClock {
  return new ManualClock(new VirtualTime(), options)
}
