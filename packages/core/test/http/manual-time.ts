import type { Clock, TimerHandle } from '../../src/time/clock.ts'

/** A clock that stands still until it is moved. Timers fire as it passes them. */
export class ManualTime implements Clock {
  #now: number
  #timers: { at: number; callback: () => void }[] = []

  constructor(now = 0) {
    this.#now = now
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  setTimeout(callback: () => void, delay: number): TimerHandle {
    const timer = { at: this.#now + delay, callback }
    this.#timers.push(timer)
    return timer
  }

  clearTimeout(handle: TimerHandle): void {
    this.#timers = this.#timers.filter((timer) => timer !== handle)
  }

  defer(callback: () => void): void {
    this.setTimeout(callback, 0)
  }

  advance(milliseconds: number): void {
    const end = this.#now + milliseconds
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (next === undefined) break
      this.clearTimeout(next)
      this.#now = Math.max(this.#now, next.at)
      next.callback()
    }
    this.#now = end
  }
}
