import type { Batch, EntryOwner, Ticket } from '../../counting/batch.ts'
import type { SyncEntry, SyncResult } from '../../store/contract.ts'

/** One read of a key from the store. It resolves once, with undefined if the store did not answer. */
class Inquiry implements EntryOwner {
  readonly rollAt: number = Number.POSITIVE_INFINITY
  readonly entry: SyncEntry
  readonly #answer: (result: SyncResult | undefined) => void

  constructor(entry: SyncEntry, answer: (result: SyncResult | undefined) => void) {
    this.entry = entry
    this.#answer = answer
  }

  roll(): void {}

  settle(_ticket: Ticket, _entry: SyncEntry, result: SyncResult): void {
    this.#answer(result)
  }

  fail(): void {
    this.#answer(undefined)
  }
}

/** Reads of single keys that travel with syncs. Their key writes count nothing. */
export class Inquiries {
  #waiting: Inquiry[] = []

  get waiting(): boolean {
    return this.#waiting.length > 0
  }

  add(entry: SyncEntry): Promise<SyncResult | undefined> {
    return new Promise((resolve) => {
      this.#waiting.push(new Inquiry(entry, resolve))
    })
  }

  collect(batch: Batch): void {
    let taken = 0
    for (; taken < this.#waiting.length && !batch.full; taken++) {
      const inquiry = this.#waiting[taken] as Inquiry
      // Slots of meters are never negative.
      batch.add(inquiry, -1, inquiry.entry)
    }
    if (taken > 0) this.#waiting.splice(0, taken)
  }

  /** Resolves all reads with undefined, because the store is down. */
  drop(): void {
    for (const inquiry of this.#waiting.splice(0)) inquiry.fail()
  }
}
