import type { Cell, StorePolicy, SyncEntry } from '../store/contract.ts'
import { newestOf, type SlidingAnnounced, slidingNews, visibleCells, windowUnits } from '../store/shapes/sliding.ts'
import { endOf, type Ordinal } from '../time/intervals.ts'
import { type Account, NODE_BYTES } from './account.ts'
import { type Applied, CountedCell, type Times } from './cell.ts'
import { Generations } from './generations.ts'

/** One key's cells, in ascending order. */
interface KeyWindow extends SlidingAnnounced {
  cells: CountedCell[]
}

/** The counts of one policy with a sliding window. */
export class SlidingCounts {
  readonly #windows: Generations<KeyWindow>

  constructor(monotonic: number) {
    this.#windows = new Generations(monotonic)
  }

  /** @param account - pays for the memory. Returns undefined if it is used up */
  apply(nodeId: string, entry: SyncEntry, times: Times, account?: Account): Applied | undefined {
    const { policy, key } = entry
    const newest = newestOf(entry.cells)
    let window = this.#windows.get(key)
    if (account !== undefined && !this.#hasRoom(nodeId, entry, window, account)) return undefined
    const before = windowUnits(window?.cells ?? [], newest, policy, times.wall)

    const grown = entry.cells.filter((sent) => sent.taken > 0 || sent.given > 0)
    let announce = false
    if (grown.length > 0) {
      window ??= { cells: [], announcedAt: -Infinity, hotUntil: -Infinity }
      this.#windows.keepFor(policy.ttl)
      this.#windows.touch(key, window)
      const { units, opened } = write(nodeId, window, grown, policy, times.wall)
      const after = windowUnits(window.cells, newest, policy, times.wall)
      announce = slidingNews({ before, after, units, opened }, window, policy, times.monotonic).announce
    }
    return { cells: visible(window, newest, policy, times.wall), announce }
  }

  /** Keys that were announced as hot within the last two windows. */
  *hot(running: Ordinal, policy: StorePolicy, times: Times): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }> {
    for (const [key, window] of this.#windows) {
      if (window.hotUntil <= times.monotonic) continue
      const cells = visible(window, running, policy, times.wall)
      if (cells.length > 0) yield { key, cells }
    }
  }

  sweep(monotonic: number): void {
    this.#windows.sweep(monotonic)
  }

  get empty(): boolean {
    return this.#windows.size === 0
  }

  /** Forgets the counts of a key. */
  reset(key: string): void {
    this.#windows.delete(key)
  }

  /** Takes the memory that an entry needs. */
  #hasRoom(nodeId: string, { key, cells }: SyncEntry, window: KeyWindow | undefined, account: Account): boolean {
    let more = 0
    let writes = false
    for (const { ordinal, taken, given } of cells) {
      if (taken === 0 && given === 0) continue
      writes = true
      const cell = window?.cells.find((one) => one.ordinal === ordinal)
      if (!cell?.has(nodeId)) more += NODE_BYTES + (cell === undefined ? NODE_BYTES : 0)
    }
    return !writes || this.#windows.takeRoom(key, more, (window?.cells.length ?? 0) * 2 * NODE_BYTES, account)
  }

  /** The number of cells. */
  get size(): number {
    let size = 0
    for (const [, window] of this.#windows) size += window.cells.length
    return size
  }
}

/** Totals that don't change with later writes. */
function visible(window: KeyWindow | undefined, newest: Ordinal, policy: StorePolicy, wall: number): Cell[] {
  return visibleCells(window?.cells ?? [], newest, policy, wall).map((cell) => cell.toCell())
}

function write(
  nodeId: string,
  window: KeyWindow,
  grown: readonly Cell[],
  policy: StorePolicy,
  wall: number,
): { units: number; opened: boolean } {
  let units = 0
  let opened = false
  for (const sent of grown) {
    let at = window.cells.length
    while (at > 0 && (window.cells[at - 1] as CountedCell).ordinal >= sent.ordinal) at--
    let cell = window.cells[at]
    if (cell === undefined || cell.ordinal !== sent.ordinal) {
      window.cells.splice(at, 0, (cell = new CountedCell(sent.ordinal)))
      opened = true
    }
    const before = cell.taken
    cell.merge(nodeId, sent)
    units += cell.taken - before
  }
  if (opened) {
    const kept = window.cells.filter((cell) => endOf(cell.ordinal, policy.width) + policy.ttl > wall)
    if (kept.length < window.cells.length) window.cells = kept
  }
  return { units, opened }
}
