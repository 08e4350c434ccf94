import { type Cell, endOf, lastCellOf, type Ordinal, type StorePolicy, type SyncEntry } from '@weir/core/sync'

/** Units of one node in one cell. */
export interface Units {
  readonly taken: number
  readonly given: number
  readonly rejected: number
}

/** The counts of one process for a key, as its value in etcd contains them. */
export interface NodeCounts {
  /** The last reset that the node knew of: units of cells up to that one were counted after it. */
  readonly epoch: number
  /** So much it knew to be in the bucket then, though the store had lost it. */
  readonly floor: { readonly ordinal: Ordinal; readonly level: number } | undefined
  readonly cells: ReadonlyMap<Ordinal, Units>
}

export const NOTHING: NodeCounts = { epoch: 0, floor: undefined, cells: new Map() }

/** Cells of a value at most, in windows: nodes whose clock is wrong count in cells that nobody else has. */
const MOST_WINDOWS = 4
const SPARE_CELLS = 8
const NUMBERS = 4

/** Whether a reset concerns a cell: units that were counted in it without knowing of the reset count no more. */
export function isForgotten(ordinal: number, epoch: number, { width }: StorePolicy): boolean {
  return epoch > 0 && ordinal <= lastCellOf(epoch, width)
}

/** Whether a node only asks. */
export function isEmpty({ taken, given, rejected = 0, level = 0 }: Cell, isBucket: boolean): boolean {
  return taken === 0 && given === 0 && (!isBucket || (rejected === 0 && level === 0))
}

/**
 * A node's counts with those of an entry: of each cell the larger counts, as they are absolute and only grow.
 *
 * @param now the time that the nodes go by
 * @param folded cells up to this one are part of the bucket's base
 * @returns the very same if the entry says nothing new
 */
export function merged(own: NodeCounts, { policy, cells, epoch = 0 }: SyncEntry, now: number, folded: number): NodeCounts {
  const isBucket = policy.drain !== undefined
  const newer = epoch > own.epoch
  const forgotten = (ordinal: Ordinal): boolean => newer && isForgotten(ordinal, epoch, policy)
  const late = (ordinal: Ordinal): boolean => epoch < own.epoch && isForgotten(ordinal, own.epoch, policy)
  const next = new Map<Ordinal, Units>()
  for (const [ordinal, units] of own.cells) if (!forgotten(ordinal)) next.set(ordinal, units)
  let floor = own.floor !== undefined && !forgotten(own.floor.ordinal) ? own.floor : undefined
  let changed = newer && own.cells.size > next.size
  for (const cell of cells) {
    const { ordinal, taken, given, rejected = 0, level = 0 } = cell
    if (isEmpty(cell, isBucket) || late(ordinal) || ordinal <= folded) continue
    const known = next.get(ordinal)
    const units = {
      taken: Math.max(taken, known?.taken ?? 0),
      given: Math.max(given, known?.given ?? 0),
      rejected: isBucket ? Math.max(rejected, known?.rejected ?? 0) : 0,
    }
    if (known === undefined || units.taken > known.taken || units.given > known.given || units.rejected > known.rejected) {
      next.set(ordinal, units)
      changed = true
    }
    if (isBucket && level > 0 && level > levelOf(floor, ordinal, policy)) {
      floor = { ordinal, level }
      changed = true
    }
  }
  const sent = new Set(cells.map(({ ordinal }) => ordinal))
  return changed ? { epoch: Math.max(epoch, own.epoch), floor, cells: kept(next, sent, policy, now, folded) } : own
}

/** The part of a process's counts that may still count for any process. */
export function living(counts: NodeCounts, policy: StorePolicy, now: number, folded: number): NodeCounts {
  return { ...counts, cells: kept(counts.cells, NONE, policy, now, folded) }
}

function levelOf(floor: NodeCounts['floor'], at: Ordinal, { drain = 0 }: StorePolicy): number {
  return floor === undefined ? 0 : Math.max(0, floor.level - (at - floor.ordinal) * drain)
}

const NONE: ReadonlySet<Ordinal> = new Set()

/** Cells that may still count for anybody, and those that were just sent, in ascending order. */
function kept(
  cells: ReadonlyMap<Ordinal, Units>,
  sent: ReadonlySet<Ordinal>,
  policy: StorePolicy,
  now: number,
  folded: number,
): Map<Ordinal, Units> {
  const { width, ttl } = policy
  const isBucket = policy.drain !== undefined
  const living = [...cells].filter(([ordinal]) => (isBucket ? ordinal > folded : sent.has(ordinal) || endOf(ordinal, width) + ttl > now))
  living.sort(([a], [b]) => a - b)
  return new Map(living.slice(-(MOST_WINDOWS * policy.cells + SPARE_CELLS)))
}

export function textOf({ epoch, floor, cells }: NodeCounts): string {
  const numbers = [epoch, floor?.ordinal ?? 0, floor?.level ?? 0]
  for (const [ordinal, { taken, given, rejected }] of cells) numbers.push(ordinal, taken, given, rejected)
  return JSON.stringify(numbers)
}

/** @returns undefined for what can't be read */
export function readCounts(text: string): NodeCounts | undefined {
  const numbers = readAmounts(text)
  if (numbers === undefined || numbers.length % NUMBERS !== 3) return undefined
  const [epoch, ordinal, level, ...rest] = numbers as [number, number, number, ...number[]]
  const cells = new Map<Ordinal, Units>()
  for (let i = 0; i < rest.length; i += NUMBERS) {
    const [at, taken, given, rejected] = rest.slice(i, i + NUMBERS) as [number, number, number, number]
    if (!Number.isSafeInteger(at)) return undefined
    cells.set(at as Ordinal, { taken, given, rejected })
  }
  if (!Number.isSafeInteger(epoch) || !Number.isSafeInteger(ordinal)) return undefined
  return { epoch, floor: level > 0 ? { ordinal: ordinal as Ordinal, level } : undefined, cells }
}

/** A list of numbers that are none of them negative; undefined for anything else. */
export function readAmounts(text: string): readonly number[] | undefined {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return undefined
  }
  const isAmount = (one: unknown): boolean => typeof one === 'number' && one >= 0 && one <= Number.MAX_SAFE_INTEGER
  return Array.isArray(list) && list.every(isAmount) ? (list as readonly number[]) : undefined
}
