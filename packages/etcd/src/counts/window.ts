import { type Cell, endOf, type Ordinal, ordinalAt, type StorePolicy } from '@weir/core/sync'
import { isForgotten, type NodeCounts } from './node-counts.ts'

/** Sums of units, by cell. */
export type Totals = ReadonlyMap<Ordinal, Cell>

/**
 * The sums over all nodes. What nodes counted before a reset that they had not heard of counts no more.
 *
 * @param epoch the key's last reset; 0 for none
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

/** Units have no fractions left beyond this. */
export function sumOf(a: number, b: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, a + b)
}

/** Fixed windows: the cells that were sent, in that order. */
export function cellsOf(totals: Totals, ordinals: readonly Ordinal[]): Cell[] {
  return ordinals.map((ordinal) => totals.get(ordinal) ?? { ordinal, taken: 0, given: 0 })
}

export function netOf(cells: Iterable<Cell>): number {
  let sum = 0
  for (const { taken, given } of cells) sum += taken - given
  return sum
}

export function newestOf(cells: readonly Cell[]): Ordinal {
  return Math.max(...cells.map(({ ordinal }) => ordinal)) as Ordinal
}

/**
 * Sliding windows: the cells that are not empty, oldest first. Cells beyond both the process's newest one and the running one come from a
 * wrong clock.
 */
export function windowOf(totals: Totals, newest: Ordinal, policy: StorePolicy, now: number): Cell[] {
  const last = Math.max(ordinalAt(now, policy.width), newest)
  return [...totals.values()]
    .filter(({ ordinal, taken, given }) => ordinal > newest - policy.cells && ordinal <= last && (taken > 0 || given > 0))
    .sort((a, b) => a.ordinal - b.ordinal)
}

/** Units in the running window, which ends with its newest cell, so that a late flush of an older one meets it too. */
export function unitsOf(totals: Totals, newest: Ordinal, policy: StorePolicy, now: number): number {
  const last = Math.max(ordinalAt(now, policy.width), newest)
  let end = newest
  for (const ordinal of totals.keys()) if (ordinal <= last && ordinal > end) end = ordinal
  let sum = 0
  for (const { ordinal, taken, given } of totals.values()) if (ordinal > end - policy.cells && ordinal <= end) sum += taken - given
  return sum
}

/** How long a node's counts of a window must last. */
export function windowLife({ cells }: NodeCounts, { width, ttl }: StorePolicy, now: number): number {
  let newest = 0
  for (const ordinal of cells.keys()) newest = Math.max(newest, ordinal)
  // A cell far in the future comes from a wrong clock.
  return Math.min(Math.max(0, endOf(newest as Ordinal, width) - now), 2 * width) + ttl
}
