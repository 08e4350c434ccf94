import { ordinalAt } from '../../time/intervals.ts'
import type { StorePolicy } from '../policy.ts'
import type { Counted } from '../units.ts'
import { type Growth, isLarge, type News, NO_NEWS, REPEAT_AFTER } from './news.ts'

/** Units in a bucket when a cell began, those of the cell included. */
export interface Level {
  readonly ordinal: number
  readonly level: number
}

/** Units in a bucket, as they came. Lists are in ascending order of cells. */
export interface BucketUnits {
  /** The units of this cell and earlier ones. */
  readonly base: Level
  /** Units of later cells. A group of several cells has the ordinal of its first one. */
  readonly groups: readonly (Counted & { readonly ordinal: number })[]
  /** Levels that processes know, although the store has lost the units: the level was no lower then. Units of later cells are added. */
  readonly floors: readonly Level[]
}

/** Returns the number of cells that a full bucket takes to run out, at most those of the policy. */
export function spanOf({ limit, drain = 0, cells }: StorePolicy): number {
  return drain > 0 ? Math.min(cells, Math.ceil(limit / drain)) : cells
}

/** Returns the units that are left of a level when a later cell begins. */
export function drainedAt({ ordinal, level }: Level, at: number, { drain = 0 }: StorePolicy): number {
  return level === 0 ? 0 : Math.max(0, level - (at - ordinal) * drain)
}

/**
 * Computes the level when the cell `at` began, units of that cell included. Between cells it drains, and never below a floor.
 *
 * @param most the level after any cell is at most this. Default: all units count
 */
export function levelAt(
  { base, groups, floors }: BucketUnits,
  at: number,
  policy: StorePolicy,
  most: number = Number.POSITIVE_INFINITY,
): number {
  let last = base
  let passed = 0
  const drainedTo = (ordinal: number, floorsUpTo: number): number => {
    let level = drainedAt(last, ordinal, policy)
    for (let floor = floors[passed]; floor !== undefined && floor.ordinal <= floorsUpTo; floor = floors[++passed]) {
      level = Math.max(level, drainedAt(floor, ordinal, policy))
    }
    return level
  }
  for (const { ordinal, taken, given } of groups) {
    if (ordinal > at) break
    // The units of a floor's own cell are part of the floor.
    last = { ordinal, level: Math.min(most, drainedTo(ordinal, ordinal - 1) + taken - given) }
  }
  return drainedTo(at, at)
}

/** The announcements of a bucket so far. */
export interface BucketAnnounced {
  /** Monotonic time of the last announcement of a full bucket. */
  announcedAt: number
  /** The key was announced as near its limit, and its level has not been below half of that mark since. */
  hot: boolean
}

/**
 * Decides which messages follow from a write to a bucket, and notes them in `announced`. A full bucket is repeated every `REPEAT_AFTER` ms.
 *
 * @param levels units when the running cell began, as in `Cell.level`. They have drained since: if a unit fits is decided by the level now
 * @param now the time that the processes use, milliseconds since the epoch
 */
export function bucketNews(levels: Growth, announced: BucketAnnounced, policy: StorePolicy, now: number, monotonic: number): News {
  const { limit, hot, width, drain = 0 } = policy
  const { units } = levels
  if (units <= 0) return NO_NEWS
  const drained = drain * (now / width - ordinalAt(now, width))
  const before = levels.before - drained
  const after = levels.after - drained
  let announce = isLarge({ before, after, units }, policy)
  if (after > limit - 1 && (before <= limit - 1 || monotonic - announced.announcedAt >= REPEAT_AFTER)) announce = true
  if (before < hot / 2) announced.hot = false
  const isHot = after >= hot && !announced.hot
  if (isHot) {
    announced.hot = true
    announce = true
  }
  if (announce && after > limit - 1) announced.announcedAt = monotonic
  return { announce, hot: isHot }
}
