import { type Cell, endOf, type Ordinal, type StorePolicy, sumOf } from '@weir/core/sync'
import { isForgotten, type NodeCounts } from './node-counts.ts'

/** Sums of units, by cell. */
export type Totals = ReadonlyMap<Ordinal, Cell>

/**
 * Returns the sums over all processes. Units that a process counted before it received a reset no longer count.
 *
 * @param epoch the key's last reset, 0 for none
 */
export function totalsOf(nodes: Iterable<NodeCounts>, epoch: number, policy: StorePolicy): Totals {
  const totals = new Map<Ordinal, Cell>()
  for (const { epoch: known, cells } of nodes) {
    for (const [ordinal, { taken, given }] of cells) {
      if (known < epoch && isForgotten(ordinal, epoch, policy)) continue
      const sum = totals.get(ordinal)
      totals.set(ordinal, { ordinal, taken: sumOf(sum?.taken ?? 0, taken), given: sumOf(sum?.given ?? 0, given) })
    }
  }
  return totals
}

/** The milliseconds that a process's counts of a window must last. */
export function windowLife({ cells }: NodeCounts, { width, ttl }: StorePolicy, now: number): number {
  let newest = 0
  for (const ordinal of cells.keys()) newest = Math.max(newest, ordinal)
  // A cell far in the future comes from a wrong clock.
  return Math.min(Math.max(0, endOf(newest as Ordinal, width) - now), 2 * width) + ttl
}
