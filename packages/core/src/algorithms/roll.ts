import { type EpochTime, endOf, type Ordinal, ordinalAt } from '../time/intervals.ts'

/** While the clock is being corrected an interval may end a little later than foreseen: look again after this. */
const RECHECK = 1
/** Milliseconds by which an interval ends early. Times of the epoch are rounded to 2^-12 ms, and a whole wait must not become one more. */
export const EARLY = 0.001
/** Milliseconds that any clock may be behind the end of an interval: an interval of a calendar seems to end by 1/64 too late. */
const LEAST_KEPT = 0.02
/**
 * Milliseconds by which the estimate of a store's clock may be corrected after clients got the end of an interval. A larger correction is
 * not allowed for, because units counted beyond an end by the store's clock are in the wrong interval.
 */
export const MOST_KEPT = 1

/**
 * The interval of the epoch that runs at `now`. If `last` has reached the end that clients got, the next one runs: a correction of the
 * clock since then, within its uncertainty, must not make `retryAfterMs` too short.
 */
export function runningAt(time: EpochTime, last: Ordinal, rollAt: number, width: number, now: number, early: number = EARLY): Ordinal {
  const at = time.at(now)
  const ordinal = ordinalAt(at + 2 * early, width)
  return ordinal === last && now >= rollAt && endOf(last, width) - at <= kept(time, now) ? ((last + 1) as Ordinal) : ordinal
}

/**
 * When to check whether the interval `ordinal` of the epoch has ended: its end on the monotonic clock, and later than `now`.
 *
 * @param told the end that clients already got, if the same interval was running before
 */
export function nextRoll(
  time: EpochTime,
  ordinal: Ordinal,
  width: number,
  now: number,
  told: number = Number.NEGATIVE_INFINITY,
  early: number = EARLY,
): number {
  const end = time.monotonicAt(endOf(ordinal, width)) - early
  if (told > now && end > told && end - told <= kept(time, now)) return told
  return end > now ? end : now + RECHECK
}

function kept(time: EpochTime, now: number): number {
  return time.uncertainty(now) > 0 ? MOST_KEPT : LEAST_KEPT
}
