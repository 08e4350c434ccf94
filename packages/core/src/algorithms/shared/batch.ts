import type { SyncEntry, SyncResult } from '../../store/contract.ts'
import type { Reservation } from '../meter.ts'
import type { LateCount } from './late-counts.ts'

/** What an entry of a batch stands for: the record in a slot, counts of a cell that is over, or a waiting request. */
export type Ticket = number | LateCount | Reservation

/** Whose an entry is: the counter that is told what became of it. Times are of the monotonic clock. */
export interface EntryOwner {
  rollAt: number
  roll(now: number): void
  /** One exchange succeeded. */
  settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void
  /** One exchange failed, or its outcome is unknown. `alone`: others of its batch did not, as one slot of a cluster is away. */
  fail(ticket: Ticket, entry: SyncEntry, now: number, alone?: boolean): void
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
