import type { Share } from '../estimate.ts'
import type { Shape } from './early-drop.ts'

/** A node tells of this part of a bucket, divided by the nodes, even where there is room for much more. */
export const LEAST_PART = 0.05
const DIVISOR = 2
/** The same while requests are let in by chance. */
export const SOFT_PART = 0.25

/** Units, and what they are held against. */
export interface Holding {
  /** What the bucket holds. */
  readonly most: number
  /** What is known to be in it, own units included. */
  readonly level: number
  /** The same without a floor; others' units since then left out. */
  readonly bare: number
  /** What others are expected to have allowed since then. */
  readonly others: number
  /** Own units that the store lacks. */
  readonly unsent: number
  /** That a key's traffic is spread over. */
  readonly nodes: number
}

/**
 * The number of own unsent units u at which a key is exchanged early: the least u with
 *
 *     u >= max(1, 0.05·b / n, (b − P) / (2·n)),   P = max(level, bare + max(u·(n − 1), others))
 *
 * where level and bare grow with u. If every node keeps to it, the units that nobody else knows of add up to half of the room at most.
 */
export function dueAt({ most, level, bare, others, unsent, nodes }: Holding): number {
  const share = DIVISOR * nodes
  const byLevel = (most - level - share * unsent) / (share + 1)
  const byOwn = (most - bare - (share + nodes - 1) * unsent) / (share + nodes)
  const byRate = (most - bare - others - share * unsent) / (share + 1)
  return Math.max(1, (LEAST_PART * most) / nodes, unsent + Math.min(byLevel, byOwn, byRate))
}

/** The nodes that a key's traffic is spread over: as many as are alive, or more by this node's share of it; not more than three times as many. */
export function spreadOver(share: Share, live: number): number {
  return Math.min(3 * live, Math.max(live, 1 / share.value(live)))
}

/** A bucket of so few units is filled by chance, also where less is asked for than the limit's pace. */
const FEW = 20

/**
 * A key that was full is rejected until so many units are free: else each request at the limit would have to be told to all. It costs
 * no throughput, as a bucket runs out all the time. Where the bucket is small beside the limit it opens no more often than twenty times per
 * interval; but not one of few units, in which nearly each unit is told anyway: there it would reject those who keep to the pace.
 */
export function freeAt(most: number, limit: number): number {
  const part = 0.1 * most
  return Math.max(1, most <= FEW ? part : Math.min(most / 2, Math.max(part, limit / 20)))
}

/** While requests are let in by chance, what is asked for is told so often, in milliseconds. */
export function softAge({ most, drain, interval }: Shape): number {
  return Math.max(most / drain / 4, interval / 50)
}
