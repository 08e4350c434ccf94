import type { IntervalMeasure } from './ledger.ts'
import { type Summary, summarize } from './summary.ts'

/** Intervals in figures. Shares and overshoots are fractions: 0.02 is 2 %. */
export interface Figures {
  /** The number of measured intervals, of all keys. */
  readonly intervals: number
  readonly requests: number
  /** Units that were allowed. */
  readonly allowed: number
  /** Units that were allowed, as a part of the units that an exact limiter would have allowed. */
  readonly allowedOfExact: number
  /** Units allowed beyond the limit in each interval, as a part of the limit. 0 for an interval without overshoot. */
  readonly overshoot: Summary
  /** The same for the worst stretch of an interval's length that ends in each interval. */
  readonly worstWindow: Summary
  /** The most units in the bucket above its size, in each interval, as a part of the limit. Buckets only. */
  readonly debt: Summary
  /** The most units by which the store's level was above the level of the units that were allowed. Buckets only. */
  readonly toldTooMuch: number
  /** Rejected requests that an exact limiter would have allowed, as a part of all requests. */
  readonly falseRequests: number
  /** Intervals with such a rejection, as a part of all intervals. */
  readonly falseIntervals: number
  /** Number of requests that were rejected although the units that were allowed left capacity for them. */
  readonly rejectedWithRoom: number
  /**
   * Requests that were rejected although no more than the limit was offered in the last interval's length, as a part of all.
   * Sliding windows only.
   */
  readonly rejectedUnderLimit: number
  /** Milliseconds from the first request beyond the limit until a process rejects: the mean over processes, for each interval. */
  readonly block: Summary
  /** The same for the slowest process. */
  readonly slowestBlock: Summary
  /** Requests that were allowed after a wait, as a part of all allowed requests. */
  readonly waited: number
  /** Key writes and changes of blocks, per key and interval. */
  readonly operations: number
}

/** The figures of some intervals. */
export function figuresOf(intervals: readonly IntervalMeasure[], limit: number): Figures {
  const total = (pick: (interval: IntervalMeasure) => number): number => intervals.reduce((sum, interval) => sum + pick(interval), 0)
  const part = (count: number, of: number): number => (of === 0 ? 0 : count / of)
  const requests = total((interval) => interval.requests)
  const allowed = total((interval) => interval.allowed)
  return {
    intervals: intervals.length,
    requests,
    allowed,
    allowedOfExact: part(
      allowed,
      total((interval) => interval.exact),
    ),
    overshoot: summarize(intervals.map((interval) => Math.max(0, interval.allowed - limit) / limit)),
    worstWindow: summarize(intervals.map((interval) => Math.max(0, interval.worstWindow - limit) / limit)),
    debt: summarize(intervals.map((interval) => interval.debt / limit)),
    toldTooMuch: intervals.reduce((most, interval) => Math.max(most, interval.toldTooMuch), 0),
    falseRequests: part(
      total((interval) => interval.falselyRejected),
      requests,
    ),
    falseIntervals: part(intervals.filter((interval) => interval.falselyRejected > 0).length, intervals.length),
    rejectedWithRoom: total((interval) => interval.rejectedWithRoom),
    rejectedUnderLimit: part(
      total((interval) => interval.rejectedUnderLimit),
      requests,
    ),
    block: summarize(intervals.flatMap((interval) => interval.blockMean ?? [])),
    slowestBlock: summarize(intervals.flatMap((interval) => interval.blockSlowest ?? [])),
    waited: part(
      total((interval) => interval.waited),
      total((interval) => interval.requests - interval.rejected),
    ),
    operations: part(
      total((interval) => interval.operations),
      intervals.length,
    ),
  }
}
