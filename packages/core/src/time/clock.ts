import { hrtime } from 'node:process'

/** What a timer is to its clock; opaque to everybody else. */
export type TimerHandle = unknown

/**
 * Where a throttler gets time and timers from. Injected, so that the code that ships also runs in virtual time.
 *
 * All times are milliseconds, fractions allowed.
 */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May step in either direction. */
  now(): number
  /** Milliseconds since an arbitrary origin. Never goes back. Read once per decision, so it must be cheap. */
  monotonic(): number
  /** Calls `callback` once after `delay` milliseconds. The timer must not keep the process alive. */
  setTimeout(callback: () => void, delay: number): TimerHandle
  /** Cancels a timer of `setTimeout`; does nothing when it has already fired. */
  clearTimeout(handle: TimerHandle): void
  /** Calls `callback` soon after the current turn of the event loop. */
  defer(callback: () => void): void
  /** Keeps the process alive, while a throttler closes, until the returned function is called. A virtual clock needs none. */
  hold?(): () => void
}

/**
 * The clock of this process: `Date.now`, `process.hrtime`, unreferenced timers, `setImmediate`. Reading the clock is most of a
 * decision; of those that Node.js has, `hrtime` costs least (`performance.now` a tenth more of a whole decision).
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => {
    const time = hrtime()
    return time[0] * 1e3 + time[1] * 1e-6
  },
  setTimeout: (callback, delay) => setTimeout(callback, delay).unref(),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
  defer: (callback) => {
    setImmediate(callback)
  },
  hold: () => {
    const timer = setInterval(() => {}, 60_000)
    return () => clearInterval(timer)
  },
}
