import { type Cell, endOf, type Ordinal, ordinalAt, type StorePolicy, type SyncEntry } from '@weir/core/sync'

/** Units that were taken, refunded and rejected. */
type Units = readonly [number, number, number]
const NONE: Units = [0, 0, 0]
const both = (a: Units, b: Units, of: (x: number, y: number) => number): Units => [of(a[0], b[0]), of(a[1], b[1]), of(a[2], b[2])]

/**
 * The counts of a key: `cells` by cell and process, `base` for all earlier cells, and `floor`, a level that a process reported after the
 * store had lost its counts.
 */
export interface Counts {
  readonly cells: Record<string, Record<string, Units>>
  base: { readonly ordinal: number; readonly level: number; readonly units: Units }
  floor: { readonly ordinal: number; readonly level: number }
  /** Until this cell fewer cells are added to `base`, because processes may still send counts of older ones. */
  heldUntil: number
  /** The newest cell in which a process wrote. */
  writtenIn: number
}

export function newCounts(): Counts {
  return { cells: {}, base: { ordinal: 0, level: 0, units: NONE }, floor: { ordinal: 0, level: 0 }, heldUntil: 0, writtenIn: 0 }
}

/** Stores a process's counts. They are absolute and only grow, so the larger ones count. @returns whether it sent any units */
export function count(counts: Counts, node: string, { policy, cells }: SyncEntry, now: number): boolean {
  const sent = cells.filter(({ taken, given, rejected = 0, level = 0 }) => taken + given + rejected + level > 0)
  if (sent.length === 0) return false
  const { drain, width, ttl } = policy
  const oldBefore = drain === undefined ? 0 : oldCells(counts, ordinalAt(now, width), policy)
  for (const ordinal of ordinalsOf(counts)) {
    const isOver = drain === undefined ? endOf(ordinal, width) + ttl <= now : ordinal < oldBefore
    if (!isOver || (drain === undefined && sent.some((one) => one.ordinal === ordinal))) continue
    // Cells that are too old to be sent again become one number.
    const level = levelAt(counts, ordinal, policy)
    counts.base = { ordinal: drain ? ordinal : 0, level, units: both(counts.base.units, unitsOf(counts, ordinal), (a, b) => a + b) }
    delete counts.cells[ordinal]
  }
  for (const { ordinal, taken, given, rejected = 0, level = 0 } of sent) {
    if (ordinal <= counts.base.ordinal) continue
    if (level > levelAt(counts, ordinal, policy)) counts.floor = { ordinal, level }
    counts.cells[ordinal] = {
      ...counts.cells[ordinal],
      [node]: both(counts.cells[ordinal]?.[node] ?? NONE, [taken, given, rejected], Math.max),
    }
  }
  return true
}

/**
 * Decides which cells are old enough for `base`. After a silence processes may send counts of older cells, so only cells that were old at
 * the last write are added. During the next span none are added, except after another silence: then cells of two spans before it.
 * @returns the cell before which all cells are old
 */
function oldCells(counts: Counts, running: number, { cells, limit, drain = 0 }: StorePolicy): number {
  const span = drain > 0 ? Math.min(cells, Math.ceil(limit / drain)) : cells
  const { writtenIn, heldUntil } = counts
  const isSilent = running - writtenIn > span / 2
  const isHeld = running < heldUntil
  counts.writtenIn = Math.max(writtenIn, running)
  // With an earlier limit the span may have been longer.
  counts.heldUntil = Math.min(isSilent ? Number.POSITIVE_INFINITY : heldUntil, running + span)
  if (isHeld && !isSilent) return 0
  return (isSilent ? writtenIn : running) - (isHeld ? 2 : 1) * span
}

/** The counts after a reset: only cells after `last`. */
export function without({ cells, heldUntil, writtenIn }: Counts, last: Ordinal): Counts {
  return {
    ...newCounts(),
    heldUntil,
    writtenIn,
    cells: Object.fromEntries(Object.entries(cells).filter(([ordinal]) => Number(ordinal) > last)),
  }
}

/** The reply to a process: the sums over all processes. */
export function totals(counts: Counts, { policy, cells }: SyncEntry, now: number): Cell[] {
  const running = ordinalAt(now, policy.width)
  if (policy.drain !== undefined) {
    const all = ordinalsOf(counts).map((ordinal) => unitsOf(counts, ordinal))
    const [taken, given, rejected] = all.reduce((a, b) => both(a, b, (x, y) => x + y), counts.base.units)
    return [{ ordinal: running, taken, given, level: levelAt(counts, running, policy), ...(rejected > 0 && { rejected }) }]
  }
  const newest = Math.max(...cells.map(({ ordinal }) => ordinal))
  const inWindow = (ordinal: number): boolean => ordinal > newest - policy.cells && ordinal <= Math.max(newest, running)
  const told = policy.cells === 1 ? cells.map(({ ordinal }) => ordinal) : ordinalsOf(counts).filter(inWindow)
  return told.map((ordinal) => ({ ordinal, taken: unitsOf(counts, ordinal)[0], given: unitsOf(counts, ordinal)[1] }))
}

/** The units in a bucket when a cell began, including the units of that cell. Later cells count as part of it. */
export function levelAt(counts: Counts, at: number, policy: StorePolicy): number {
  const { drain = 0, limit, maxDebt = Number.POSITIVE_INFINITY } = policy
  let { ordinal: since, level } = counts.base
  const runTo = (ordinal: number): void => {
    level = Math.max(0, level - (ordinal - since) * drain)
    since = ordinal
  }
  const { floor } = counts
  for (const ordinal of [...ordinalsOf(counts), Number.POSITIVE_INFINITY]) {
    if (floor.ordinal >= since && floor.ordinal < Math.min(ordinal, at + 1)) {
      runTo(floor.ordinal)
      level = Math.max(level, floor.level)
    }
    runTo(Math.max(since, Math.min(ordinal, at)))
    const [taken, given] = unitsOf(counts, ordinal)
    level = Math.min(Math.max(0, level + taken - given), limit + maxDebt)
  }
  return level
}

function ordinalsOf({ cells }: Counts): Ordinal[] {
  return Object.keys(cells)
    .map((ordinal) => Number(ordinal) as Ordinal)
    .sort((a, b) => a - b)
}

function unitsOf({ cells }: Counts, ordinal: number): Units {
  return Object.values(cells[ordinal] ?? {}).reduce((a, b) => both(a, b, (x, y) => x + y), NONE)
}
