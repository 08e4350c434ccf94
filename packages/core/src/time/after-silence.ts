import type { Clock, TimerHandle } from './clock.ts'

/**
 * The number of timers that divide the patience. A busy process delays them, so the time in which it could not read a reply doesn't count.
 */
const LOOKS = 10

/**
 * The part of a look that counts after the process stood still. It has had hardly any time to read then. But a process that only ever runs
 * for moments must give up, too.
 */
const AFTER_FREEZE = 0.25

/** A timer that fires this much too late, in milliseconds, shows that the process stood still. */
export const STOOD_STILL = 500

/**
 * Calls a function after this many milliseconds in which the process could have read a reply.
 *
 * @returns a function that cancels it
 */
export function afterSilence(clock: Clock, patience: number, then: () => void): () => void {
  let timer: TimerHandle
  let left = LOOKS
  const look = (): void => {
    const dueAt = clock.monotonic() + patience / LOOKS
    timer = clock.setTimeout(() => {
      // Where requests drive the clock, a late timer shows only that no request came.
      left -= clock.driven || clock.monotonic() < dueAt + STOOD_STILL ? 1 : AFTER_FREEZE
      if (left <= 0) then()
      else look()
    }, patience / LOOKS)
  }
  look()
  return () => clock.clearTimeout(timer)
}
