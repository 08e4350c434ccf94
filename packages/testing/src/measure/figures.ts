import type { IntervalMeasure } from './ledger.ts'
import { type Summary, summarize } from './summary.ts'

/** Intervals in figures. Shares and overshoots are fractions: 0.02 is 2 %. */
export interface Figures {
  /** Intervals of keys that were measured. */
  readonly intervals: number
  readonly requests: number
  /** Units allowed. */
  readonly allowed: number
  /** Units allowed, as a part of what an exact limiter would have allowed. */
  readonly allowedOfExact: number
  /** Units allowed beyond the limit in each interval, as a part of the limit; 0 where there were none. */
  readonly overshoot: Summary
  /** The same for the worst stretch of an interval's length that ends in each interval. */
  readonly worstWindow: Summary
  /** The most units in the bucket beyond what it may hold, of each interval, as a part of the limit; buckets only. */
  readonly debt: Summary
  /** Units by which the store's level was above that of what was really allowed, at most; buckets only. */
  readonly toldTooMuch: number
  /** Requests rejected that an exact limiter would have allowed, as a part of all requests. */
  readonly falseRequests: number
  /** Intervals with such a rejection, as a part of all intervals. */
  readonly falseIntervals: number
  /** Number of requests rejected while the units really allowed left room for them. */
  readonly rejectedWithRoom: number
  /** Requests rejected though no more than the limit was offered in the interval's length, as a part of all; sliding windows only. */
  readonly rejectedUnderLimit: number
  /** Milliseconds from the first request beyond the limit to where a node rejects: mean over nodes, for each interval. */
  readonly block: Summary
  /** The same for the slowest node. */
  readonly slowestBlock: Summary
  /** Requests that were allowed after a wait, as a part of all that were allowed. */
  readonly waited: number
  /** Entries of syncs and changes of blocks, per key and interval. */
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
