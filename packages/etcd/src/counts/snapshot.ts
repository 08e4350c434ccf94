import {
  bucketNews,
  type Cell,
  type News,
  newestOf,
  type Ordinal,
  type StorePolicy,
  type SyncEntry,
  type SyncResult,
  slidingNews,
  visibleCells,
  windowNews,
  windowUnits,
} from '@weir/core/sync'
import type { Held } from '../gateway/replies.ts'
import { BASE } from '../keys/layout.ts'
import { type Block, blockedOf, epochOf, readBlock } from '../records/blocks.ts'
import { type Base, Bucket, readBase } from './bucket.ts'
import { type NodeCounts, readCounts } from './node-counts.ts'
import type { Own } from './own.ts'
import { type Totals, totalsOf } from './window.ts'

/**
 * The messages that follow from a write: `News`, with the cells in which the key came near its limit. For sliding windows and buckets that
 * cell is 0.
 */
export interface CellNews {
  readonly announce: boolean
  readonly hot: readonly number[]
}

/** A key with the counts of all processes, at one revision of etcd. */
export class Snapshot {
  readonly block: Block | undefined
  readonly base: Base | undefined
  readonly others: readonly NodeCounts[]
  /** The counts of this process in etcd. */
  readonly own: { readonly revision: number; readonly counts: NodeCounts | undefined } | undefined
  readonly #policy: StorePolicy
  readonly #now: number

  /** @param unreadable receives the names of values that can't be read. They count as nothing */
  constructor(
    policy: StorePolicy,
    prefix: string,
    ownName: string,
    held: readonly Held[],
    block: Held | undefined,
    now: number,
    unreadable: (name: string) => void,
  ) {
    this.#policy = policy
    this.#now = now
    this.block = block && read(block, readBlock, unreadable)
    const others: NodeCounts[] = []
    for (const one of held) {
      if (one.name === ownName) this.own = { revision: one.revision, counts: read(one, readCounts, unreadable) }
      else if (one.name === prefix + BASE) this.base = read(one, readBase, unreadable)
      else {
        const counts = read(one, readCounts, unreadable)
        if (counts !== undefined) others.push(counts)
      }
    }
    this.others = others
  }

  /** The key's last reset that processes may not have received yet, 0 for none. */
  get epoch(): number {
    return epochOf(this.block, this.#now)
  }

  totals(own: NodeCounts): Totals {
    return totalsOf([...this.others, own], this.epoch, this.#policy)
  }

  bucket(own: NodeCounts | undefined): Bucket {
    return new Bucket(this.#policy, this.base, own === undefined ? this.others : [...this.others, own], this.epoch, this.#now)
  }

  /** The result for the process that sent an entry. */
  result({ cells }: SyncEntry, own: NodeCounts): Pick<SyncResult, 'cells' | 'blocked' | 'manual'> {
    return { cells: this.cells(cells, own), ...blockedOf(this.block, this.#now) }
  }

  cells(sent: readonly Cell[], own: NodeCounts): Cell[] {
    const policy = this.#policy
    if (policy.drain !== undefined) return [this.bucket(own).cell]
    const totals = this.totals(own)
    if (policy.cells === 1) return sent.map(({ ordinal }) => totals.get(ordinal) ?? { ordinal, taken: 0, given: 0 })
    return visibleCells([...totals.values()], newestOf(sent), policy, this.#now).sort((a, b) => a.ordinal - b.ordinal)
  }

  /** The announcements that follow from a write of this process, given its counts before. */
  news({ cells }: SyncEntry, before: NodeCounts, own: Own, monotonic: number): CellNews {
    const policy = this.#policy
    const after = own.counts
    const units = unitsTaken(after) - unitsTaken(before)
    if (policy.drain !== undefined) {
      const levels = { before: this.bucket(before).level, after: this.bucket(after).level, units }
      return wholeKey(bucketNews(levels, own, policy, this.#now, monotonic))
    }
    const [was, is] = [this.totals(before), this.totals(after)]
    if (policy.cells === 1) {
      const all = cells.map(({ ordinal }) => {
        const write = { ordinal, before: netIn(was, ordinal), after: netIn(is, ordinal), wasHot: false }
        return { ordinal, ...windowNews(write, policy, this.#now) }
      })
      return { announce: all.some(({ announce }) => announce), hot: all.flatMap(({ ordinal, hot }) => (hot ? ordinal : [])) }
    }
    const unitsIn = (totals: Totals): number => windowUnits([...totals.values()], newestOf(cells), policy, this.#now)
    const opened = [...after.cells.keys()].some((ordinal) => !before.cells.has(ordinal))
    return wholeKey(slidingNews({ before: unitsIn(was), after: unitsIn(is), units, opened }, own, policy, monotonic))
  }
}

function wholeKey({ announce, hot }: News): CellNews {
  return { announce, hot: hot ? [0] : [] }
}

function netIn(totals: Totals, ordinal: Ordinal): number {
  const { taken, given } = totals.get(ordinal) ?? { taken: 0, given: 0 }
  return taken - given
}

function unitsTaken({ cells }: NodeCounts): number {
  let sum = 0
  for (const { taken } of cells.values()) sum += taken
  return sum
}

function read<T>(held: Held, parse: (text: string) => T | undefined, unreadable: (name: string) => void): T | undefined {
  const parsed = parse(held.value)
  if (parsed === undefined) unreadable(held.name)
  return parsed
}
