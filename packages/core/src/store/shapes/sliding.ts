import { type Ordinal, ordinalAt } from '../../time/intervals.ts'
import type { Cell, StorePolicy } from '../policy.ts'
import { type Growth, isLarge, type News, NO_NEWS, REPEAT_AFTER } from './news.ts'

/** The newest of some cells. */
export function newestOf(cells: readonly Cell[]): Ordinal {
  let newest = Number.NEGATIVE_INFINITY
  for (const { ordinal } of cells) if (ordinal > newest) newest = ordinal
  return newest as Ordinal
}

/** Cells beyond both the process's newest one and the running one come from a wrong clock. They are sent to no process. */
function lastOf(newest: Ordinal, { width }: StorePolicy, now: number): Ordinal {
  return Math.max(ordinalAt(now, width), newest) as Ordinal
}

/**
 * Selects the totals that a process receives, in the order given: those of the window that ends with its newest cell, and of later cells.
 *
 * @param newest the newest cell that the process sent
 * @param now the time that the processes use, milliseconds since the epoch
 */
export function visibleCells<Total extends Cell>(cells: readonly Total[], newest: Ordinal, policy: StorePolicy, now: number): Total[] {
  const last = lastOf(newest, policy, now)
  return cells.filter(({ ordinal, taken, given }) => ordinal > newest - policy.cells && ordinal <= last && (taken > 0 || given > 0))
}

/**
 * Adds up the units in the running window. It ends with the newest visible cell, so that a late write to an older one is compared with the
 * limit too. Parameters are as in `visibleCells`.
 */
export function windowUnits(cells: readonly Cell[], newest: Ordinal, policy: StorePolicy, now: number): number {
  const last = lastOf(newest, policy, now)
  let end = newest
  for (const { ordinal } of cells) if (ordinal <= last && ordinal > end) end = ordinal
  let sum = 0
  for (const { ordinal, taken, given } of cells) if (ordinal > end - policy.cells && ordinal <= end) sum += taken - given
  return sum
}

/**
 * The part of the limit at which totals are announced too, so that processes send the few units that they have not sent. Otherwise a burst
 * that ends just below the limit would leave each process with units that the others don't count.
 */
const NEARLY_FULL = 0.98

/** The announcements of a sliding window so far. Times are of the monotonic clock. */
export interface SlidingAnnounced {
  /** The last announcement of a reached limit. */
  announcedAt: number
  /** Until then the key counts as announced to be near its limit. */
  hotUntil: number
}

/** A write to a sliding window, with the units in the running window before and after it. */
export interface SlidingWrite extends Growth {
  /** The write added the first units to a cell. */
  readonly opened: boolean
}

/**
 * Decides which messages follow from a write to a sliding window, and notes them in `announced`. A reached limit is repeated every
 * `REPEAT_AFTER` ms.
 */
export function slidingNews(write: SlidingWrite, announced: SlidingAnnounced, policy: StorePolicy, monotonic: number): News {
  const { before, after, units, opened } = write
  const { limit, hot, width, cells } = policy
  if (units <= 0) return NO_NEWS
  const nearly = NEARLY_FULL * limit
  let announce = (before < nearly && after >= nearly) || isLarge(write, policy)
  if (after >= limit && (before < limit || monotonic - announced.announcedAt >= REPEAT_AFTER)) announce = true
  const span = width * cells
  const isHot = after >= hot && (before < hot || opened) && announced.hotUntil <= monotonic + span
  if (isHot) {
    // Announced once a window, and sent to processes that start for as long as it may still be hot without passing the mark again.
    announced.hotUntil = monotonic + 2 * span
    announce = true
  }
  if (announce && after >= limit) announced.announcedAt = monotonic
  return { announce, hot: isHot }
}
