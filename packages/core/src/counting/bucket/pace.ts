import type { Share } from '../estimate.ts'
import type { Shape } from './early-drop.ts'

/** The part of a bucket, divided by the processes, below which unsent units are not worth a sync. */
export const LEAST_PART = 0.05
const DIVISOR = 2
/** The same while requests are allowed at random. */
export const SOFT_PART = 0.25

/** The units of a key, and the level and capacity to compare them with. */
export interface Holding {
  /** The bucket's capacity. */
  readonly most: number
  /** The confirmed level, own units included. */
  readonly level: number
  /** The same without a floor, and without the others' units since then. */
  readonly bare: number
  /** Units that others have probably allowed since then. */
  readonly others: number
  /** Own units that the store lacks. */
  readonly unsent: number
  /** The processes over which a key's traffic is spread. */
  readonly nodes: number
}

/**
 * The number of own unsent units u at which a key is synced early: the least u with
 *
 *     u >= max(1, 0.05·b / n, (b − P) / (2·n)),   P = max(level, bare + max(u·(n − 1), others))
 *
 * where level and bare grow with u. If every process follows it, their unsent units together are at most half of the free capacity.
 */
export function dueAt({ most, level, bare, others, unsent, nodes }: Holding): number {
  const share = DIVISOR * nodes
  const byLevel = (most - level - share * unsent) / (share + 1)
  const byOwn = (most - bare - (share + nodes - 1) * unsent) / (share + nodes)
  const byRate = (most - bare - others - share * unsent) / (share + 1)
  return Math.max(1, (LEAST_PART * most) / nodes, unsent + Math.min(byLevel, byOwn, byRate))
}

/** The processes over which a key's traffic is spread: the live ones, or more by this process's share of it, up to three times as many. */
export function spreadOver(share: Share, live: number): number {
  return Math.min(3 * live, Math.max(live, 1 / share.value(live)))
}

/** A bucket of this many units or fewer is sometimes filled by chance, even if demand is below the limit's pace. */
const FEW = 20

/**
 * A full key is rejected until these units are free: otherwise each request at the limit would have to be sent to all processes. It costs
 * no throughput, because a bucket drains all the time. A bucket that is small beside the limit opens at most twenty times per interval. But
 * not a bucket of few units: nearly each unit of it is sent anyway, and the pause would reject clients that keep to the pace.
 */
export function freeAt(most: number, limit: number): number {
  const part = 0.1 * most
  return Math.max(1, most <= FEW ? part : Math.min(most / 2, Math.max(part, limit / 20)))
}

/** Milliseconds between two reports of the demand, while requests are allowed at random. */
export function softAge({ most, drain, interval }: Shape): number {
  return Math.max(most / drain / 4, interval / 50)
}
