import type { Clock, TimerHandle } from './clock.ts'

/**
 * The number of timers that divide the patience. A busy process delays them, so the time in which it could not read a reply doesn't count.
 */
const LOOKS = 10

/**
 * Calls a function after this many milliseconds in which the process could have read a reply.
 *
 * @returns a function that cancels it
 */
export function afterSilence(clock: Clock, patience: number, then: () => void): () => void {
  let timer: TimerHandle
  let left = LOOKS
  const look = (): void => {
    timer = clock.setTimeout(() => (--left === 0 ? then() : look()), patience / LOOKS)
  }
  look()
  return () => clock.clearTimeout(timer)
}
