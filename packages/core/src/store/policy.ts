import { type Ordinal, ordinalAt } from '../time/intervals.ts'

/** The facts about a policy that a store needs to keep its counts. Every entry of one policy has the same object. */
export interface StorePolicy {
  /** Tells policies apart: name, interval, algorithm, coordination and layout version; not the limit. */
  readonly id: string
  /** Width of a cell in milliseconds: the interval, or a part of a sliding window's bucket. */
  readonly width: number
  /** Cells that count together towards the limit: 1 for a fixed window, those of `buckets + 1` buckets for a sliding one. */
  readonly cells: number
  /** This node's limit in units; used for announcements only. Nodes may differ in it. */
  readonly limit: number
  /**
   * Announce a key once per cell (fixed) when its total passes this many units, and from then on also each write of a twentieth
   * of the limit (and of at least 2 units) or more; `Infinity` for never. Of a bucket: when its level passes it, and again after it
   * was below half of that.
   */
  readonly hot: number
  /** How long cells live in the store after they were last written, in milliseconds. */
  readonly ttl: number
  /**
   * Buckets: units that drain in the time of a cell. Then `limit` is the bucket's size, and the store keeps its level: see `BUCKET_PARTS`.
   * Processes may have different values. Absent for windows.
   */
  readonly drain?: number
  /** Buckets: the most units beyond `limit` that its level remembers. Absent: all of them. */
  readonly maxDebt?: number
}

/** How the counts of a policy are kept: cells that count alone, cells that count together, or the level of a bucket. */
export type Shape = 'fixed' | 'sliding' | 'bucket'

export function shapeOf({ cells, drain }: StorePolicy): Shape {
  if (drain !== undefined) return 'bucket'
  return cells > 1 ? 'sliding' : 'fixed'
}

/**
 * A store keeps a bucket as one level and the units that came after it, and answers with the level that they make now. Units are
 * taken to have come when their cell began, or earlier: then a level is never above that of what was really allowed, in
 * whatever order, however late and however often the nodes send.
 *
 *     span    the cells that a full bucket takes to run out, `limit / drain` rounded up, at most `cells`
 *     group   units of cells that are all taken to have come with the first one: of those that begin within `span / FINE_PARTS` of it, and of
 *             those within `span / BUCKET_PARTS` before which the bucket had not run out since. So nothing is lost but what runs out
 *             in a 128th of the time that all of it takes. Both are at least one cell; cells from the future count as the running one
 *     level   0 at the beginning; each group that is more than `span` cells old is added to it, once it has run down by `drain` for
 *             each cell since. What is sent later for a cell that is not newer than the last such group is dropped
 *
 * After a silence (no write for half a span, or the first write ever) nodes may still send older units. The write that ends the silence adds
 * only the groups that were more than `span` cells old at the last write before it, and starts a hold of one span, during which no group is
 * added. If another silence ends during a hold, the hold starts again, and the groups are added that were more than two spans old at the last
 * write. Otherwise a bucket with rare writes would keep all its units, and a changed limit would drain them at its own rate. For the same
 * reason a hold ends at most one span of the current limit from now. At most `BUCKET_GROUPS` groups are kept; if there are more, the two
 * oldest are joined.
 */
export const BUCKET_PARTS = 8
export const FINE_PARTS = 128
export const BUCKET_GROUPS = 32

/** Units of one cell. Both numbers only grow while the cell lives; what counts is `taken - given`. */
export interface Cell {
  /** The number of the cell since the Unix epoch, by the policy's `width`. */
  readonly ordinal: Ordinal
  /** Units taken (allowed). */
  readonly taken: number
  /** Units refunded. */
  readonly given: number
  /**
   * In what a store says of a bucket: units in it when the cell began, those of the cell included. Then the cell is the running one,
   * and `taken` and `given` are all units that the store has heard of. In what a node sends: so many units it knows to be in it, in the
   * same way of speaking, though the store has lost what they were: the store takes up what it lacks.
   */
  readonly level?: number
  /**
   * Units rejected, which count towards nothing: that others know how much is asked for. Only grows, like the others. In what a store
   * says of a bucket: all that it has heard of. Absent: 0.
   */
  readonly rejected?: number
}

/**
 * The last cell that a reset concerns: the one after that of its moment, since clocks of nodes may be a little ahead. Units of
 * later cells count whether or not their node has heard of the reset.
 */
export function lastCellOf(epoch: number, width: number): Ordinal {
  return (ordinalAt(epoch, width) + 1) as Ordinal
}

/**
 * Fixed windows: the number of cells up to `lastCellOf` that may still count for any process. On a reset a store forgets the key's counts
 * in these.
 */
export const RESET_CELLS = 3

/** The last time that a store's clock may show: up to here ordinals of the shortest buckets leave room for what meters add to them. */
export const LATEST = 4e13
