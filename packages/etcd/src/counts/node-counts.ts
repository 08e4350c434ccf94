import { type Cell, endOf, lastCellOf, type Ordinal, type StorePolicy, type SyncEntry } from '@weir/core/sync'

/** Units of one process in one cell. */
export interface Units {
  readonly taken: number
  readonly given: number
  readonly rejected: number
}

/** The counts of one process for a key, as its value in etcd contains them. */
export interface NodeCounts {
  /** The last reset that the process had received. Its units in the cells of that reset were counted after it. */
  readonly epoch: number
  /** The level that the process had confirmed for that cell, although the store has lost its counts. */
  readonly floor: { readonly ordinal: Ordinal; readonly level: number } | undefined
  readonly cells: ReadonlyMap<Ordinal, Units>
}

export const NOTHING: NodeCounts = { epoch: 0, floor: undefined, cells: new Map() }

/** The most cells of a value, in windows. Processes with a wrong clock count in cells that no other process uses. */
const MOST_WINDOWS = 4
const SPARE_CELLS = 8
const NUMBERS = 4

/** Returns whether a reset concerns a cell. Units that a process counted in it before it received the reset no longer count. */
export function isForgotten(ordinal: number, epoch: number, { width }: StorePolicy): boolean {
  return epoch > 0 && ordinal <= lastCellOf(epoch, width)
}

/** Returns whether a cell only requests totals, with nothing to write. */
export function isEmpty({ taken, given, rejected = 0, level = 0 }: Cell, isBucket: boolean): boolean {
  return taken === 0 && given === 0 && (!isBucket || (rejected === 0 && level === 0))
}

/**
 * Merges a process's counts with those of an entry. Each cell keeps the larger counts, because counts are absolute and only grow.
 *
 * @param now the processes' common time
 * @param folded cells up to this one are part of the bucket's base
 * @returns the same object if the entry contains nothing new
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

/** Returns the cells that may still count for any process, and the cells that were just sent, in ascending order. */
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

/** @returns undefined if the text can't be read */
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

/** Returns a list of numbers that are not negative, or undefined for any other text. */
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
