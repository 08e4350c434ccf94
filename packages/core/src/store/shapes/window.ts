import { endOf, type Ordinal } from '../../time/intervals.ts'
import type { StorePolicy } from '../policy.ts'
import { isLarge, type News } from './news.ts'

/** A write to one cell of a fixed window. */
export interface WindowWrite {
  readonly ordinal: Ordinal
  /** Units in the cell before and after it. */
  readonly before: number
  readonly after: number
  /** The key was announced before as near its limit in this cell. */
  readonly wasHot: boolean
}

/**
 * Decides which messages follow from a write to a fixed window: one when the total passes `hot`, one when it reaches the limit, and one for
 * each large write while the cell is not over.
 *
 * @param now the time that the processes use, milliseconds since the epoch
 */
export function windowNews({ ordinal, before, after, wasHot }: WindowWrite, policy: StorePolicy, now: number): News {
  const { limit, hot, width } = policy
  const isHot = before < hot && after >= hot && !wasHot
  const isFull = before < limit && after >= limit
  const large = isLarge({ before, after, units: after - before }, policy) && endOf(ordinal, width) > now
  return { announce: isHot || isFull || large, hot: isHot }
}
