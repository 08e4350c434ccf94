import type { SyncEntry, SyncResult } from '../store/contract.ts'
import type { Lease } from '../store/leases/lease.ts'
import type { LateCount } from './late-counts.ts'

/** An ask for quota: which lease of a key it is for, and that it is for requests with a number below `end`. */
export interface LeaseTicket {
  readonly kind: 'lease'
  readonly slot: number
  /** The key's leases, whatever is in the slot by now. */
  readonly of: object
  readonly lease: Lease
  readonly end: number
}

/** What an entry of a batch stands for: the record in a slot, counts of a cell that is over, or an ask for quota. */
export type Ticket = number | LateCount | LeaseTicket

/** Whose an entry is: the counter that is told what became of it. Times are of the monotonic clock. */
export interface EntryOwner {
  rollAt: number
  roll(now: number): void
  /** One exchange succeeded. */
  settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void
  /** One exchange failed, or its outcome is unknown. `alone`: others of its batch did not, as one slot of a cluster is away. */
  fail(ticket: Ticket, entry: SyncEntry, now: number, alone?: boolean): void
  /** One exchange takes longer than usual: what fills fast is decided without it. */
  late(ticket: Ticket): void
  /** One exchange takes much longer than usual. Its end, good or bad, is still to come. */
  overdue(ticket: Ticket): void
}

/** Entries that travel together, and whose they are. */
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
