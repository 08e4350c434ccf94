import type { StorePolicy } from '../policy.ts'

/** The effect of one write on a key's total, in units. */
export interface Growth {
  readonly before: number
  readonly after: number
  /** Units newly taken. */
  readonly units: number
}

/** The messages that follow from one write. */
export interface News {
  /** Other processes should receive the totals now. */
  readonly announce: boolean
  /** The key came near its limit with this write: it passed `StorePolicy.hot`. Processes that start receive the totals of such keys. */
  readonly hot: boolean
}

export const NO_NEWS: News = { announce: false, hot: false }

/** Shortest time between two announcements of a key that stays full, in milliseconds. */
export const REPEAT_AFTER = 10

/** The part of the limit from which on one write is news by itself, if it is of more than one unit. */
const LARGE_WRITE = 1 / 20

/**
 * Whether one write of a key near its limit is news for the other processes: they may compare expensive requests with the total that they
 * last received, and one of these allowed in error is worth many others.
 */
export function isLarge({ after, units }: Growth, { limit, hot }: StorePolicy): boolean {
  return after >= hot && units >= Math.max(2, LARGE_WRITE * limit)
}
