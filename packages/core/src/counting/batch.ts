import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { Lease } from '../store/leases/lease.ts'
import type { LateCount } from './late-counts.ts'

/** A request for quota: its lease, and the waiting requests that need it, those with a number below `end`. */
export interface LeaseTicket {
  readonly kind: 'lease'
  readonly slot: number
  /** The key's leases, even if the slot has another key by now. */
  readonly of: object
  readonly lease: Lease
  readonly end: number
}

/** The content of an entry: the record in a slot, counts of a cell that has ended, or a request for quota. */
export type Ticket = number | LateCount | LeaseTicket

/** The meter of an entry, which gets its result. Times are of the monotonic clock. */
export interface EntryOwner {
  rollAt: number
  roll(now: number): void
  /** A key write succeeded. */
  settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void
  /** A key write failed, or its result is unknown. `alone`: others of its batch succeeded, because only one slot of a cluster is down. */
  fail(ticket: Ticket, entry: SyncEntry, now: number, alone?: boolean): void
  /** A reply takes longer than usual: keys that fill fast are decided without it. */
  late?(ticket: Ticket, now: number): void
  /** A reply takes much longer than usual. `settle` or `fail` still follows. */
  overdue?(ticket: Ticket, now: number): void
}

/** The entries of one sync, with their meters. */
export class Batch {
  readonly entries: SyncEntry[] = []
  readonly owners: EntryOwner[] = []
  readonly tickets: Ticket[] = []
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  get full(): boolean {
    return this.entries.length >= this.#most
  }

  add(owner: EntryOwner, ticket: Ticket, entry: SyncEntry): void {
    this.entries.push(entry)
    this.owners.push(owner)
    this.tickets.push(ticket)
  }
}
