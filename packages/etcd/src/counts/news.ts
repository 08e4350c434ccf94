import { endOf, type StorePolicy } from '@weir/core/sync'

/** Shortest time between two announcements of a full key, in milliseconds. */
const REPEAT_AFTER = 10
/** Totals are news also when they pass this part of a limit, for nodes to send the few units that they still hold. */
const NEARLY_FULL = 0.98
/** The part of the limit from which on one write is news by itself, if it is of more than one unit. */
const LARGE_WRITE = 1 / 20

/** The announcements of a key that this process has made. Times are of the monotonic clock. */
export interface Told {
  announcedAt: number
  /** Sliding windows: the time until which the key counts as announced to be near its limit. */
  hotUntil: number
  /** Buckets: it was announced to be near its limit, and its level has not been below half of that since. */
  hot: boolean
}

export function newTold(): Told {
  return { announcedAt: Number.NEGATIVE_INFINITY, hotUntil: Number.NEGATIVE_INFINITY, hot: false }
}

/** The effect of a write on the units that count towards the limit. */
export interface Growth {
  readonly before: number
  readonly after: number
  /** Units newly taken. */
  readonly units: number
}

export interface News {
  readonly announce: boolean
  /** Cells in which it became hot, of which nodes hear that start. Of what is not counted by single cells: 0. */
  readonly hot: readonly number[]
}

/** Whether one write of a hot key is news: others may hold expensive requests against what they know. */
function isLarge(units: number, total: number, { limit, hot }: StorePolicy): boolean {
  return total >= hot && units >= Math.max(2, LARGE_WRITE * limit)
}

/** @param ordinal of the cell, which is no news once it is over */
export function fixedNews({ before, after, units }: Growth, ordinal: number, policy: StorePolicy, now: number): News {
  const { limit, hot, width } = policy
  const hotNow = before < hot && after >= hot
  const large = isLarge(units, after, policy) && endOf(ordinal as Parameters<typeof endOf>[0], width) > now
  return { announce: hotNow || large || (before < limit && after >= limit), hot: hotNow ? [ordinal] : [] }
}

/** @param opened the node counts in a cell in which it had not counted */
export function slidingNews(
  { before, after, units }: Growth,
  opened: boolean,
  told: Told,
  { limit, hot, width, cells, ...rest }: StorePolicy,
  monotonic: number,
): News {
  if (units <= 0) return { announce: false, hot: [] }
  const nearly = NEARLY_FULL * limit
  let announce = (before < nearly && after >= nearly) || isLarge(units, after, { limit, hot, width, cells, ...rest })
  if (after >= limit && (before < limit || monotonic - told.announcedAt >= REPEAT_AFTER)) announce = true
  let hotNow = false
  const span = width * cells
  if (after >= hot && (before < hot || opened) && told.hotUntil <= monotonic + span) {
    // Once a window, and handed to new nodes for as long as it may still be hot without a further mark.
    told.hotUntil = monotonic + 2 * span
    hotNow = true
    announce = true
  }
  if (announce && after >= limit) told.announcedAt = monotonic
  return { announce, hot: hotNow ? [0] : [] }
}

export function bucketNews({ before, after, units }: Growth, told: Told, policy: StorePolicy, monotonic: number): News {
  const { limit, hot } = policy
  if (units <= 0) return { announce: false, hot: [] }
  let announce = isLarge(units, after, policy)
  if (after > limit - 1 && (before <= limit - 1 || monotonic - told.announcedAt >= REPEAT_AFTER)) announce = true
  if (before < hot / 2) told.hot = false
  const hotNow = after >= hot && !told.hot
  if (hotNow) {
    told.hot = true
    announce = true
  }
  if (announce && after > limit - 1) told.announcedAt = monotonic
  return { announce, hot: hotNow ? [0] : [] }
}
