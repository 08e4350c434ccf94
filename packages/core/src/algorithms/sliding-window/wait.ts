import { endOf, type Ordinal, startOf } from '../../time/intervals.ts'
import type { MeterPolicy } from '../meter.ts'
import { EARLY_RELEASE } from './cells.ts'
import type { SlidingKey } from './key.ts'

/** How a sliding window is kept. */
export interface WindowShape {
  /** Parts of the interval that counts are kept in. */
  readonly buckets: number
  /** The part of the limit that must be free before a full key opens again. */
  readonly reopen: number
}

/** A sliding window at a moment. */
export interface WindowAt {
  readonly policy: MeterPolicy
  readonly shape: WindowShape
  /** Milliseconds of a bucket. */
  readonly width: number
  /** The running bucket. */
  readonly ordinal: Ordinal
  /** The moment, in milliseconds since the epoch of the policy's clock. */
  readonly at: number
}

/** A key that is closed opens when no more than so many units are in the window. */
export function reopensBelow(limit: number, { reopen }: WindowShape): number {
  return limit - Math.max(1, reopen * limit)
}

/** Milliseconds until enough of the window has left for a request of `cost`, as far as known. */
export function opensIn(key: SlidingKey, cost: number, { policy, shape, width, ordinal, at }: WindowAt): number {
  const { limit } = key
  for (let ahead = 0; ahead <= shape.buckets + 1; ahead++) {
    const oldest = (ordinal - shape.buckets + ahead) as Ordinal
    const tooMuch = key.cells.total(oldest) - (limit - Math.min(cost, limit))
    // What the running bucket holds does not keep a key closed, see `BackgroundSlidingWindow`.
    const end = Math.max(ordinal + ahead, key.lookedAt + 1)
    const tooFull = key.closed ? key.cells.total(oldest, end) - reopensBelow(limit, shape) : 0
    const beyond = Math.max(tooMuch, tooFull, 0)
    const units = key.cells.unitsIn(oldest)
    if (beyond > Math.min(EARLY_RELEASE * limit, units)) continue
    // Part of the oldest bucket is released while it leaves.
    const opens = startOf((ordinal + ahead) as Ordinal, width) + (beyond > 0 ? (beyond / units) * width : 0)
    return Math.max(0, opens - at)
  }
  return policy.interval
}

/**
 * Milliseconds until a node lets a request of `cost` in without the store.
 *
 * @param share which part of the key's traffic is its own
 * @param now on the monotonic clock
 */
export function opensAlone(
  key: SlidingKey,
  cost: number,
  share: number,
  now: number,
  { policy, shape, width, ordinal, at }: WindowAt,
): number {
  const { degraded, interval } = policy
  const { limit } = key
  if (degraded === 'published') return Math.max(0, key.spanEnd - now)
  if (degraded === 'closed') return endOf(ordinal, width) - at
  for (let ahead = 0; ahead <= shape.buckets + 1; ahead++) {
    const { sum, own, unsent } = key.cells.since((ordinal - shape.buckets + ahead) as Ordinal)
    if (unsent + cost <= mostAlone(limit - (sum - unsent), own, share))
      return Math.max(0, startOf((ordinal + ahead) as Ordinal, width) - at)
  }
  return interval
}

/**
 * Units that a node may hold back of what is left while the store is away: its share, and one in any case where it has none
 * of its own. If a small limit's share were 0, an outage of the store would be an outage of the service.
 */
export function mostAlone(left: number, own: number, share: number): number {
  const room = Math.max(0, left)
  return Math.max(room * share, room > 0 && own === 0 ? 1 : 0)
}
