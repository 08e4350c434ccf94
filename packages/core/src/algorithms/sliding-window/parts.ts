import type { MeterPolicy } from '../meter.ts'

/** Parts of a bucket, at most. */
const MOST_PARTS = 32
/** Parts of an interval, at most: what a store keeps of a key is in proportion. */
const MOST_IN_ALL = 960
/** Milliseconds that a part lasts, at least: nodes do not know the time better. */
const SHORTEST = 25
/** Of limits up to this no more parts are in use than there are units. */
const FEW_UNITS = 200

/** In how many parts a bucket is divided: a power of two, so that buckets begin with a part whatever is rounded. */
export function partsOf({ interval, cooldown }: MeterPolicy, buckets: number): number {
  let parts = 1
  // After a cooldown all nodes open at the same moment, which whole buckets tell them best.
  if (cooldown > 0) return parts
  while (2 * parts <= MOST_PARTS && 2 * parts * buckets <= MOST_IN_ALL && interval / buckets / (2 * parts) >= SHORTEST) parts *= 2
  return parts
}

/** Whether steady traffic is counted by bucket, and leaves with it. */
export function countsByBucket(limit: number, parts: number): boolean {
  return parts > 1 && limit > FEW_UNITS
}
