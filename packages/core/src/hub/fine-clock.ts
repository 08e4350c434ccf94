import type { Clock } from '../time/clock.ts'

/** Wall clocks show whole milliseconds, so a smaller difference is no step. */
const RESOLUTION = 1

/**
 * A clock whose wall time continues between two whole milliseconds, and steps when the wall clock does. If a store showed whole
 * milliseconds, its processes' estimate of its time would vary by one, and rejected clients would come back up to a millisecond too early.
 */
export function fineClock(clock: Clock): Clock {
  let ahead = Number.NaN
  return {
    now() {
      const wall = clock.now()
      const monotonic = clock.monotonic()
      if (!(Math.abs(wall - (monotonic + ahead)) < RESOLUTION)) ahead = wall - monotonic
      return monotonic + ahead
    },
    monotonic: () => clock.monotonic(),
    setTimeout: (callback, delay) => clock.setTimeout(callback, delay),
    clearTimeout: (handle) => clock.clearTimeout(handle),
    defer: (callback) => clock.defer(callback),
  }
}
