import { Counter } from '../../decide/limiter.ts'
import { RESEND, STRICT } from '../../decide/stats.ts'
import { BLOCKED, DUE, IN_FLIGHT } from '../../keys/key-table.ts'
import type { Batch } from './batch.ts'

/** Shortest time between two exchanges of one key, in milliseconds. */
const SPACING = 2
/** After this time a key whose part of the store is away is tried again, in milliseconds: as often as a store that is away. */
const RETRY_ALONE = 200
/** Slots that a new key in a full table looks at for an idle one. */
const EVICT_STEP = 1_000
/**
 * Within this time after the store's return every node has found it again and told it its counts, in milliseconds: a probe
 * period and some round trips.
 */
export const SETTLE = 250

/**
 * Units of the others that are taken over at most. However many a store claims, a sum with own units must keep these, down
 * to a millionth, or they would be lost when the claim is taken back.
 */
export function mostOthers(limit: number): number {
  return Math.max(2 ** 32, 4 * limit)
}

/** What windows of all shapes have in common: how a key's exchange is asked for, and how idle keys make room for new ones. */
export abstract class ExchangedCounter extends Counter {
  #hand = 0
  #handOrdinal = -1

  /** Queues the key for an exchange; spacing and a flight under way are taken into account. */
  protected wantExchange(slot: number, now: number, reason: number): void {
    const flags = this.table.flags[slot] as number
    if ((flags & (IN_FLIGHT | DUE)) !== 0) return
    // Each waiting request is counted when it is sent.
    if (reason !== STRICT) this.stats.countExchange(reason)
    this.#queue(slot, Math.max(now, this.sentAt(slot) + SPACING))
  }

  /** Tries a key again whose part of the store is away, though others answer. */
  protected retryAlone(slot: number, now: number): void {
    const flags = this.table.flags[slot] as number
    if ((flags & (IN_FLIGHT | DUE)) !== 0 || this.table.keys[slot] === undefined) return
    this.stats.countExchange(RESEND)
    this.#queue(slot, now + RETRY_ALONE)
  }

  #queue(slot: number, at: number): void {
    this.table.flags[slot] = (this.table.flags[slot] as number) | DUE
    this.host.due(this, slot, at)
  }

  /** When the key was sent last, on the monotonic clock; -Infinity if it never was. */
  protected abstract sentAt(slot: number): number

  override undue(slot: number): void {
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~DUE
    this.markStale(slot)
  }

  override collect(slot: number, now: number, batch: Batch): void {
    const flags = (this.table.flags[slot] as number) & ~DUE
    this.table.flags[slot] = flags
    if ((flags & IN_FLIGHT) === 0 && this.table.keys[slot] !== undefined) this.sendDue(slot, now, batch)
  }

  /** Adds a due key's counts to a batch, unless there is nothing to send. */
  protected abstract sendDue(slot: number, now: number, batch: Batch): void

  /** A clock hand goes round the table once per cell at most; after that every key in it is in use. */
  protected override evict(): boolean {
    const { table } = this
    if (this.#handOrdinal !== this.ordinal) {
      this.#handOrdinal = this.ordinal
      this.#hand = 0
    }
    const end = Math.min(table.end, this.#hand + EVICT_STEP)
    for (; this.#hand < end; this.#hand++) {
      const slot = this.#hand
      if (table.keys[slot] === undefined || ((table.flags[slot] as number) & (BLOCKED | IN_FLIGHT | DUE)) !== 0) continue
      if (this.mayForget(slot)) this.forget(slot)
    }
    return !table.full
  }

  /** Whether a key that nothing is under way of may go; what it holds is put aside then. */
  protected abstract mayForget(slot: number): boolean
}
