import { type EpochTime, endOf, type Ordinal } from '../time/intervals.ts'

/** While the clock is being corrected an interval may end a little later than foreseen: look again after this. */
const RECHECK = 1

/** When to look whether the interval `ordinal` of the epoch is over: its end on the monotonic clock, and later than `now`. */
export function nextRoll(time: EpochTime, ordinal: Ordinal, width: number, now: number): number {
  const end = time.monotonicAt(endOf(ordinal, width))
  return end > now ? end : now + RECHECK
}
