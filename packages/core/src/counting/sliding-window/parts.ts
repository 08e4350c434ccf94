import type { MeterPolicy } from '../../algorithms/meter.ts'

/** Groups of parts of a bucket, at most. */
const MOST_GROUPS = 32
/** Groups of an interval, at most: what a store keeps of a key that is not in a burst is in proportion. */
const MOST_IN_ALL = 960
/** Milliseconds that a group lasts, at least: with each of them all gates are computed anew. */
const SHORTEST_GROUP = 25
/** Parts of a group, at most, … */
const MOST_OF_GROUP = 8
/** … and the milliseconds that one lasts, at least: processes don't know the time much better. */
const SHORTEST = 5
/** Of limits up to this no more parts are in use than there are units. */
const FEW_UNITS = 200

/**
 * In how many parts a bucket is divided, and how many of them are a group: powers of two, so that subWindows and groups begin with a part
 * whatever is rounded.
 */
export function partsOf({ interval, cooldown }: MeterPolicy, subWindows: number): { readonly parts: number; readonly group: number } {
  // After a cooldown all nodes open at the same moment, which whole subWindows tell them best.
  if (cooldown > 0) return { parts: 1, group: 1 }
  const bucket = interval / subWindows
  let groups = 1
  while (2 * groups <= MOST_GROUPS && 2 * groups * subWindows <= MOST_IN_ALL && bucket / (2 * groups) >= SHORTEST_GROUP) groups *= 2
  let group = 1
  // Of a short bucket there is nothing to count more finely.
  while (groups > 1 && 2 * group <= MOST_OF_GROUP && bucket / groups / (2 * group) >= SHORTEST) group *= 2
  return { parts: groups * group, group }
}

/** Whether steady traffic is counted by bucket, and leaves with it. */
export function countsByBucket(limit: number, parts: number): boolean {
  return parts > 1 && limit > FEW_UNITS
}
