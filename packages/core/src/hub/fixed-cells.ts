import type { Cell, StorePolicy, SyncEntry } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type Applied, CountedCell, growthOver } from './cell.ts'

/** All keys of one interval. They are forgotten together, so that no key needs a timer or a scan. */
interface IntervalTable {
  readonly keys: Map<string, CountedCell>
  readonly hot: Map<string, CountedCell>
  writtenAt: number
}

/** The counts of one policy with a fixed window: a table for each interval that is still alive. */
export class FixedCounts {
  readonly #tables = new Map<Ordinal, IntervalTable>()
  #ttl = 0

  /** @param monotonic - the monotonic time of the exchange */
  apply(nodeId: string, entry: SyncEntry, monotonic: number): Applied {
    const { policy, key } = entry
    if (entry.atMost !== undefined && !this.#fits(nodeId, entry, entry.atMost)) {
      return { cells: entry.cells.map((sent) => this.#total(sent.ordinal, key)), granted: false, announce: false }
    }
    const cells: Cell[] = []
    let announce = false
    for (const sent of entry.cells) {
      if (this.#add(nodeId, policy, key, sent, monotonic)) announce = true
      cells.push(this.#total(sent.ordinal, key))
    }
    return { cells, granted: true, announce }
  }

  /** Keys that are hot in the interval `running`, or in one that a node with a faster clock has begun. */
  *hot(running: Ordinal): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }> {
    for (const [ordinal, table] of this.#tables) {
      if (ordinal < running) continue
      for (const [key, cell] of table.hot) yield { key, cells: [cell.toCell()] }
    }
  }

  sweep(monotonic: number): void {
    for (const [ordinal, table] of this.#tables) {
      if (table.writtenAt + this.#ttl < monotonic) this.#tables.delete(ordinal)
    }
  }

  /** Cells held. */
  get size(): number {
    let size = 0
    for (const table of this.#tables.values()) size += table.keys.size
    return size
  }

  /** A unit that is already counted is never refused again: asking twice gives the same answer. */
  #fits(nodeId: string, entry: SyncEntry, atMost: number): boolean {
    return entry.cells.every((sent) => {
      const cell = this.#tables.get(sent.ordinal)?.keys.get(entry.key)
      const more = cell === undefined ? growthOver(undefined, sent) : cell.growth(nodeId, sent)
      return more.taken === 0 || (cell?.net ?? 0) + more.taken - more.given <= atMost
    })
  }

  /** Returns whether the total passed a mark that others should know of. */
  #add(nodeId: string, policy: StorePolicy, key: string, sent: Cell, monotonic: number): boolean {
    if (sent.taken === 0 && sent.given === 0) return false
    let table = this.#tables.get(sent.ordinal)
    if (table === undefined) {
      this.#tables.set(sent.ordinal, (table = { keys: new Map(), hot: new Map(), writtenAt: monotonic }))
    }
    table.writtenAt = monotonic
    if (policy.ttl > this.#ttl) this.#ttl = policy.ttl
    let cell = table.keys.get(key)
    if (cell === undefined) table.keys.set(key, (cell = new CountedCell(sent.ordinal)))

    const before = cell.net
    cell.merge(nodeId, sent)
    const after = cell.net
    let announce = before < policy.limit && after >= policy.limit
    if (before < policy.hot && after >= policy.hot && !table.hot.has(key)) {
      table.hot.set(key, cell)
      announce = true
    }
    return announce
  }

  #total(ordinal: Ordinal, key: string): Cell {
    return this.#tables.get(ordinal)?.keys.get(key)?.toCell() ?? { ordinal, taken: 0, given: 0 }
  }
}
