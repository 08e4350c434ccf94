import type { Clock, TimerHandle } from '@weir/core'

/** How often is looked within the patience whether it is over: what kept the process busy meanwhile is nobody's silence. */
const LOOKS = 10

/**
 * Calls a function after so many milliseconds in which this process could have heard an answer.
 *
 * @returns what calls it off
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
