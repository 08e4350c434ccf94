import type { Clock } from '../time/clock.ts'

/** Wall clocks show whole milliseconds: a difference below it is none. */
const RESOLUTION = 1

/**
 * A clock whose wall goes on between two whole milliseconds, and steps when the wall clock does. A store that shows whole milliseconds would
 * have the nodes' idea of its time waver by one, and have clients that were rejected come back up to a millisecond too early.
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
