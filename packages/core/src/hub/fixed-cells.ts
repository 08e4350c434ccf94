import { type Cell, RESET_CELLS, type StorePolicy, type SyncEntry } from '../store/contract.ts'
import { windowNews } from '../store/shapes/window.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type Account, keyBytes, NODE_BYTES, POLICY_BYTES, Tally } from './account.ts'
import { type Applied, CountedCell, type Times } from './cell.ts'

/** The number of ttls after which an interval is forgotten even if a process writes to it. No correct process still does. */
const LONGEST_LIFE = 4

/** All keys of one interval. They are forgotten together, so that no key needs a timer or a scan. */
interface IntervalTable {
  readonly keys: Map<string, CountedCell>
  readonly hot: Map<string, CountedCell>
  writtenAt: number
  readonly madeAt: number
  readonly tally: Tally
}

/** The counts of one policy with a fixed window: a table for each interval that is still alive. */
export class FixedCounts {
  readonly #tables = new Map<Ordinal, IntervalTable>()
  #ttl = 0

  /** @param account - pays for the memory. Returns undefined if it is used up */
  apply(nodeId: string, entry: SyncEntry, times: Times, account?: Account): Applied | undefined {
    const { policy, key } = entry
    if (account !== undefined && !this.#hasRoom(nodeId, entry, times.monotonic, account)) return undefined
    const cells: Cell[] = []
    let announce = false
    for (const sent of entry.cells) {
      if (this.#add(nodeId, policy, key, sent, times)) announce = true
      cells.push(this.#total(sent.ordinal, key))
    }
    return { cells, announce }
  }

  /** Keys that are hot in the interval `running`, or in a later interval that a process with a faster clock has begun. */
  *hot(running: Ordinal): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }> {
    for (const [ordinal, table] of this.#tables) {
      if (ordinal < running) continue
      for (const [key, cell] of table.hot) yield { key, cells: [cell.toCell()] }
    }
  }

  sweep(monotonic: number): void {
    for (const [ordinal, table] of this.#tables) {
      if (table.writtenAt + this.#ttl >= monotonic && table.madeAt + LONGEST_LIFE * this.#ttl >= monotonic) continue
      this.#tables.delete(ordinal)
      table.tally.release()
    }
  }

  /** Forgets the counts of a key in the intervals up to `last` that may still count. */
  reset(key: string, last: Ordinal): void {
    for (const [ordinal, { keys, hot }] of this.#tables) {
      if (ordinal > last || ordinal <= last - RESET_CELLS) continue
      keys.delete(key)
      hot.delete(key)
    }
  }

  /** Takes the memory that an entry needs. It is released with the interval. */
  #hasRoom(nodeId: string, { key, cells }: SyncEntry, monotonic: number, account: Account): boolean {
    return cells.every(({ ordinal, taken, given }) => {
      if (taken === 0 && given === 0) return true
      const table = this.#tables.get(ordinal)
      const cell = table?.keys.get(key)
      if (cell?.has(nodeId)) return true
      const bytes = NODE_BYTES + (cell === undefined ? keyBytes(key) : 0) + (table === undefined ? POLICY_BYTES : 0)
      if (!account.take(bytes)) return false
      this.#tableOf(ordinal, monotonic).tally.note(account, bytes)
      return true
    })
  }

  #tableOf(ordinal: Ordinal, monotonic: number): IntervalTable {
    let table = this.#tables.get(ordinal)
    if (table === undefined) {
      this.#tables.set(ordinal, (table = { keys: new Map(), hot: new Map(), writtenAt: monotonic, madeAt: monotonic, tally: new Tally() }))
    }
    return table
  }

  get empty(): boolean {
    return this.#tables.size === 0
  }

  /** The number of cells. */
  get size(): number {
    let size = 0
    for (const table of this.#tables.values()) size += table.keys.size
    return size
  }

  /** Returns whether other processes should receive the total. */
  #add(nodeId: string, policy: StorePolicy, key: string, sent: Cell, { wall, monotonic }: Times): boolean {
    if (sent.taken === 0 && sent.given === 0) return false
    const table = this.#tableOf(sent.ordinal, monotonic)
    table.writtenAt = monotonic
    if (policy.ttl > this.#ttl) this.#ttl = policy.ttl
    let cell = table.keys.get(key)
    if (cell === undefined) table.keys.set(key, (cell = new CountedCell(sent.ordinal)))

    const before = cell.net
    cell.merge(nodeId, sent)
    const news = windowNews({ ordinal: sent.ordinal, before, after: cell.net, wasHot: table.hot.has(key) }, policy, wall)
    if (news.hot) table.hot.set(key, cell)
    return news.announce
  }

  #total(ordinal: Ordinal, key: string): Cell {
    return this.#tables.get(ordinal)?.keys.get(key)?.toCell() ?? { ordinal, taken: 0, given: 0 }
  }
}
