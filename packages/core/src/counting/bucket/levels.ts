import type { Paces } from '../../algorithms/bucket/paces.ts'
import { drained } from '../../algorithms/bucket/step.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { baseOf, type KeyTable } from '../../keys/key-table.ts'
import { MOST_UNITS } from '../../store/units.ts'

/** The fields of a key's record: the confirmed level of its bucket, and its time on the monotonic clock. */
const LEVEL = 3
const AT = 4

/** The levels of all keys, in the key table. Times are of the monotonic clock. */
export class Levels {
  readonly #table: KeyTable
  readonly #site: SharedSite
  readonly #paces: Paces
  readonly #interval: number
  readonly #maxDebt: number | undefined
  #markedLevel = 0
  #markedAt = 0

  /** @param maxDebt units beyond the capacity that a level may have. Undefined for any number */
  constructor(site: SharedSite, paces: Paces, interval: number, maxDebt: number | undefined) {
    this.#table = site.table
    this.#site = site
    this.#paces = paces
    this.#interval = interval
    this.#maxDebt = maxDebt
  }

  /** The confirmed level of the bucket. */
  at(slot: number, now: number): number {
    const { fields } = this.#table
    const base = baseOf(slot)
    return drained(fields[base + LEVEL] as number, now - (fields[base + AT] as number), this.#paces.of(slot), this.#interval)
  }

  set(slot: number, level: number, now: number): void {
    const { fields } = this.#table
    const base = baseOf(slot)
    const most = this.#maxDebt === undefined ? MOST_UNITS : this.#site.most(this.#site.limitOf(slot)) + this.#maxDebt
    fields[base + LEVEL] = Math.min(most, level)
    fields[base + AT] = now
  }

  /** Stores a key's level, for `restore` at the same moment. */
  mark(slot: number): void {
    const { fields } = this.#table
    const base = baseOf(slot)
    this.#markedLevel = fields[base + LEVEL] as number
    this.#markedAt = fields[base + AT] as number
  }

  restore(slot: number): void {
    const { fields } = this.#table
    const base = baseOf(slot)
    fields[base + LEVEL] = this.#markedLevel
    fields[base + AT] = this.#markedAt
  }
}
