import type { Ordinal } from '../../time/intervals.ts'
import type { MeterPolicy } from '../meter.ts'
import { EARLY_RELEASE, netOf, USUAL_RELEASE } from './cells.ts'
import type { SlidingKey } from './key.ts'

/** How a sliding window is kept. */
export interface WindowShape {
  /** Parts of the interval that a full key opens by. */
  readonly buckets: number
  /** Parts of a bucket: counts are kept by them. */
  readonly parts: number
  /** The part of the limit that must be free before a full key opens again. */
  readonly reopen: number
}

/** A sliding window at a moment. */
export interface WindowAt {
  readonly policy: MeterPolicy
  readonly shape: WindowShape
  /** Milliseconds of a part of a bucket. */
  readonly width: number
  /** The running bucket. */
  readonly bucket: number
  /** Whether what a bucket's first part holds leaves with the whole bucket. */
  readonly byBucket: boolean
  /** Whether a closed key opens by parts, too. */
  readonly byPart: boolean
  /** The moment, in milliseconds since the epoch of the policy's clock. */
  readonly at: number
}

/** A key that is closed opens when no more than so many units are in the window. */
export function reopensBelow(limit: number, { reopen }: WindowShape): number {
  return limit - Math.max(1, reopen * limit)
}

/** Milliseconds until enough of the window has left for a request of `cost`, as far as known. */
export function opensIn(key: SlidingKey, cost: number, window: WindowAt): number {
  const fits = fitsAt(key, key.limit - Math.min(cost, key.limit), window)
  return Math.max(0, (key.closed ? Math.max(fits, reopensAt(key, window)) : fits) - window.at)
}

/** When no more than `most` units are left, as one part leaves after the other. */
function fitsAt({ cells, limit }: SlidingKey, most: number, { shape: { buckets, parts }, width, byBucket, bucket, at }: WindowAt): number {
  const span = buckets * parts
  let beyond = cells.total(((bucket - buckets) * parts) as Ordinal) - most
  if (!(beyond > 0)) return at
  // What leaves with its bucket, and the part after which that is gone.
  let held = 0
  let end = 0
  let since = at
  const opensEarly = (): number =>
    held > 0 && beyond <= Math.min(USUAL_RELEASE * limit, held)
      ? Math.max(since, (end - parts + span + (beyond / held) * parts) * width)
      : Number.POSITIVE_INFINITY
  for (const cell of cells) {
    const { ordinal } = cell
    if (held > 0 && ordinal >= end) {
      const early = opensEarly()
      if (early < Number.POSITIVE_INFINITY) return early
      beyond -= held
      held = 0
      since = (end + span) * width
      if (!(beyond > 0)) return since
    }
    const units = netOf(cell)
    if (byBucket && ordinal % parts === 0) {
      held = units
      end = ordinal + parts
      continue
    }
    const left = (ordinal + 1 + span) * width
    if (!byBucket && beyond <= Math.min(EARLY_RELEASE * limit, units)) return left + (beyond / units - 1) * width
    const early = opensEarly()
    if (early < left) return early
    beyond -= units
    since = left
    if (!(beyond > 0)) return left
  }
  return Math.min(opensEarly(), held > 0 ? (end + span) * width : since)
}

/** When a closed key opens, whole buckets leaving one after the other. What the running one holds does not keep it closed. */
function reopensAt(key: SlidingKey, window: WindowAt): number {
  const { limit, cells } = key
  const { policy, shape, width, bucket, at } = window
  const { buckets, parts } = shape
  const soon = window.byPart ? fitsAt(key, reopensBelow(limit, shape), window) : Number.POSITIVE_INFINITY
  for (let ahead = 0; ahead <= buckets + 1; ahead++) {
    const oldest = ((bucket - buckets + ahead) * parts) as Ordinal
    const end = Math.max(bucket + ahead, key.lookedAt + 1) * parts
    const beyond = cells.total(oldest, end) - reopensBelow(limit, shape)
    const units = cells.total(oldest, oldest + parts)
    if (beyond > Math.min(EARLY_RELEASE * limit, units)) continue
    // Part of the oldest bucket is released while it leaves.
    const wide = width * parts
    return Math.min(soon, (bucket + ahead) * wide + (beyond > 0 ? (beyond / units) * wide : 0))
  }
  return Math.min(soon, at + policy.interval)
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
  { policy, shape, width, bucket, at }: WindowAt,
): number {
  const { degraded, interval } = policy
  const { limit } = key
  if (degraded === 'published') return Math.max(0, key.spanEnd - now)
  if (degraded === 'closed') return (bucket + 1) * shape.parts * width - at
  for (let ahead = 0; ahead <= shape.buckets + 1; ahead++) {
    const { sum, own, unsent } = key.cells.since(((bucket - shape.buckets + ahead) * shape.parts) as Ordinal)
    if (unsent + cost <= mostAlone({ limit, sum, own, unsent }, share)) return Math.max(0, (bucket + ahead) * shape.parts * width - at)
  }
  return interval
}

/**
 * Units that a node may hold back of what is left while the store is away: its share, and one in any case where it has none
 * of its own. If a small limit's share were 0, an outage of the store would be an outage of the service.
 */
export function mostAlone({ limit, sum, own, unsent }: Counted, share: number): number {
  const room = Math.max(0, limit - (sum - unsent))
  return Math.max(room * share, room > 0 && own === 0 ? 1 : 0)
}

/** Units in the window: all as far as known, own ones, and those among these that the store lacks. */
interface Counted {
  readonly limit: number
  readonly sum: number
  readonly own: number
  readonly unsent: number
}
