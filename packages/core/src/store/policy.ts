import { type Ordinal, ordinalAt } from '../time/intervals.ts'

/** The facts about a policy that a store needs to keep its counts. Every entry of one policy has the same object. */
export interface StorePolicy {
  /** Distinguishes policies by name, interval, algorithm, coordination and layout version, but not by limit. */
  readonly id: string
  /** Width of a cell in milliseconds: the interval, a part of a sub-window of a sliding window, or a short time of a bucket. */
  readonly width: number
  /** Cells that count together towards the limit: 1 for a fixed window, the cells of `subWindows + 1` sub-windows for a sliding one. */
  readonly cells: number
  /** This process's limit in units. For windows it is used for announcements only. Processes may have different limits. */
  readonly limit: number
  /**
   * The number of units from which a key is near its limit. The store announces the key when its total passes it: once per cell for fixed
   * windows, once per window for sliding ones, and for buckets again after the level was below half of it. From then on it also announces
   * each write of at least a twentieth of the limit and at least 2 units. `Infinity` for never.
   */
  readonly hot: number
  /** Milliseconds for which cells live in the store after they were last written. */
  readonly ttl: number
  /**
   * Buckets: units that drain in the time of a cell. Then `limit` is the bucket's size, and the store keeps its level: see `BUCKET_PARTS`.
   * Processes may have different values. Absent for windows.
   */
  readonly drain?: number
  /** Buckets: the most units beyond `limit` that its level remembers. Absent: all of them. */
  readonly maxDebt?: number
}

/** The rule by which a store adds up cells: each cell counts alone, several count together, or they make the level of a bucket. */
export type Shape = 'fixed' | 'sliding' | 'bucket'

export function shapeOf({ cells, drain }: StorePolicy): Shape {
  if (drain !== undefined) return 'bucket'
  return cells > 1 ? 'sliding' : 'fixed'
}

/**
 * A store keeps a bucket as one level and the units that came after it, and replies with the level that results now. Units count from the
 * begin of their cell, or earlier. So a level is never above the level of the units that were really allowed, in whatever order, however
 * late and however often processes send them.
 *
 *     span    the cells in which a full bucket drains completely, `limit / drain` rounded up, at most `cells`
 *     group   units of cells that all count from the first of these cells: cells that begin within `span / FINE_PARTS` of it, and cells
 *             within `span / BUCKET_PARTS` if the bucket has not been empty since. So only units are lost that drain in a 128th of the
 *             time that a full bucket takes. Both lengths are at least one cell. Cells from the future count as the running one
 *     level   0 at the beginning. Each group that is more than `span` cells old is added to it, after it has drained by `drain` for
 *             each cell since. Units that are sent later for a cell that is not newer than the last such group are dropped
 *
 * After a silence (no write for half a span, or the first write ever) processes may still send older units. The write that ends the silence
 * adds only the groups that were more than `span` cells old at the last write before it, and starts a pause of one span, in which no group
 * is added. If another silence ends in a pause, the pause starts again, and the groups are added that were more than two spans old at the
 * last write. Otherwise a bucket with rare writes would keep all its units, and a changed limit would drain them at its own rate. For the
 * same reason a pause ends at most one span of the current limit from now. At most `BUCKET_GROUPS` groups are kept. If there are more, the
 * two oldest are joined.
 */
export const BUCKET_PARTS = 8
export const FINE_PARTS = 128
export const BUCKET_GROUPS = 32

/** Units of one cell. Both numbers only grow while the cell lives. The units that count are `taken - given`. */
export interface Cell {
  /** The number of the cell since the Unix epoch, by the policy's `width`. */
  readonly ordinal: Ordinal
  /** Units taken (allowed). */
  readonly taken: number
  /** Units refunded. */
  readonly given: number
  /**
   * Only for buckets. In a store's reply it is the units in the bucket when the running cell began, including units of that cell. Then
   * `taken` and `given` are all units that the store has received. In a key write it is the level that the process knows, in the same
   * measure, although the store has lost the units. The store raises its level to it.
   */
  readonly level?: number
  /**
   * Units rejected. They count towards no limit, but show other processes the demand. Only grows, like the other counts. In a store's reply
   * for a bucket it is all units rejected that the store has received. Absent: 0.
   */
  readonly rejected?: number
}

/**
 * The last cell that a reset concerns: the one after the cell of the reset, because clocks of processes may be a little ahead. Units of
 * later cells count even if their process has not received the reset.
 */
export function lastCellOf(epoch: number, width: number): Ordinal {
  return (ordinalAt(epoch, width) + 1) as Ordinal
}

/**
 * Fixed windows: the number of cells up to `lastCellOf` that may still count for any process. On a reset a store forgets the key's counts
 * in these.
 */
export const RESET_CELLS = 3

/** The latest time that a store's clock may show. Up to it, ordinals of the shortest cells stay exact if meters add to them. */
export const LATEST = 4e13
