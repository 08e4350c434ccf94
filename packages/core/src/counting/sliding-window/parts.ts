import type { MeterPolicy } from '../../algorithms/meter.ts'

/** Groups of a sub-window's parts, at most. */
const MOST_GROUPS = 32
/** Groups of an interval, at most: the store's memory for a key that is not in a burst is in proportion. */
const MOST_IN_ALL = 960
/** Milliseconds that a group lasts, at least: at the end of each group all gates are computed again. */
const SHORTEST_GROUP = 25
/** Parts of a group, at most, … */
const MOST_OF_GROUP = 8
/** … and milliseconds that one lasts, at least: the clocks of processes don't agree much better. */
const SHORTEST = 5
/** With limits up to this, no more parts are in use than there are units. */
const FEW_UNITS = 200

/**
 * The number of parts of a sub-window, and of parts in a group: powers of two, so that sub-windows and groups begin with a part despite
 * rounding.
 */
export function partsOf({ interval, cooldown }: MeterPolicy, subWindows: number): { readonly parts: number; readonly group: number } {
  // After a cooldown all processes open at the same moment, which whole sub-windows show best.
  if (cooldown > 0) return { parts: 1, group: 1 }
  const bucket = interval / subWindows
  let groups = 1
  while (2 * groups <= MOST_GROUPS && 2 * groups * subWindows <= MOST_IN_ALL && bucket / (2 * groups) >= SHORTEST_GROUP) groups *= 2
  let group = 1
  // A short sub-window needs no finer parts.
  while (groups > 1 && 2 * group <= MOST_OF_GROUP && bucket / groups / (2 * group) >= SHORTEST) group *= 2
  return { parts: groups * group, group }
}

/** Whether steady traffic is counted by sub-window, and leaves with it. */
export function countsByBucket(limit: number, parts: number): boolean {
  return parts > 1 && limit > FEW_UNITS
}
