import type { KeyTable } from './key-table.ts'

/** Slots that are visited in one turn of the event loop. Some visits take a microsecond. */
const SLICE = 5_000

/** Visits all slots of a table once, slice by slice. A million at once would block the event loop for tens of milliseconds. */
export class Slices {
  readonly #table: KeyTable
  readonly #defer: (run: () => void) => void
  readonly #visit: (slot: number) => void
  readonly #ended: () => void
  /** The next slot. Infinite while there is nothing to do. */
  #next: number = Number.POSITIVE_INFINITY
  #deferred = false

  /** @param ended is called when all slots were visited since the last `begin` */
  constructor(table: KeyTable, defer: (run: () => void) => void, visit: (slot: number) => void, ended: () => void = () => {}) {
    this.#table = table
    this.#defer = defer
    this.#visit = visit
    this.#ended = ended
  }

  /** Starts, or starts again. A table with few keys is visited at once. */
  begin(): void {
    this.#next = 0
    if (!this.#deferred) this.#step()
  }

  /** Visits all remaining slots now. */
  finish(): void {
    this.#to(this.#table.end)
  }

  #step(): void {
    this.#to(Math.min(this.#table.end, this.#next + SLICE))
    if (this.#next === Number.POSITIVE_INFINITY) return
    this.#deferred = true
    this.#defer(() => {
      this.#deferred = false
      if (this.#next < Number.POSITIVE_INFINITY) this.#step()
    })
  }

  #to(end: number): void {
    const { keys } = this.#table
    for (let slot = this.#next; slot < end; slot++) if (keys[slot] !== undefined) this.#visit(slot)
    this.#next = end >= this.#table.end ? Number.POSITIVE_INFINITY : end
    if (this.#next === Number.POSITIVE_INFINITY) this.#ended()
  }
}
