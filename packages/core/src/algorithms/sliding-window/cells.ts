import { sumOf } from '../../keys/units.ts'
import type { Cell } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'

/** The oldest bucket counts in full but for this part of the limit, which is released as the bucket leaves. */
export const EARLY_RELEASE = 0.02

/** What a node knows of one bucket of one key, in units. */
export interface Bucket {
  readonly ordinal: Ordinal
  /** Net units of the other nodes, at least. */
  others: number
  /** Refunded by anybody, as last told. */
  givenByAll: number
  /** Own units taken and refunded, and how many of them the store has acknowledged. */
  taken: number
  given: number
  takenSent: number
  givenSent: number
  /** Own net units in the exchange under way, beyond those acknowledged. */
  flight: number
}

/** The buckets of one key that are not empty, oldest first. Usually few: an idle key has none, a busy one 31. */
export class SlidingCells {
  #list: Bucket[] = []

  get empty(): boolean {
    return this.#list.length === 0
  }

  [Symbol.iterator](): IterableIterator<Bucket> {
    return this.#list[Symbol.iterator]()
  }

  /** The bucket `ordinal`, made if need be. */
  at(ordinal: Ordinal): Bucket {
    const list = this.#list
    let index = list.length
    while (index > 0 && (list[index - 1] as Bucket).ordinal > ordinal) index--
    const found = list[index - 1]
    if (found !== undefined && found.ordinal === ordinal) return found
    const bucket: Bucket = { ordinal, others: 0, givenByAll: 0, taken: 0, given: 0, takenSent: 0, givenSent: 0, flight: 0 }
    list.splice(index, 0, bucket)
    return bucket
  }

  find(ordinal: Ordinal): Bucket | undefined {
    return this.#list.find((bucket) => bucket.ordinal === ordinal)
  }

  /** Units in the bucket `ordinal`, as far as known. */
  unitsIn(ordinal: Ordinal): number {
    const bucket = this.find(ordinal)
    return bucket === undefined ? 0 : bucket.others + bucket.taken - bucket.given
  }

  /** Books own units of buckets after `running`, which a clock that was ahead has made, into the running one. */
  moveBack(running: Ordinal): void {
    let taken = 0
    let given = 0
    for (const ahead of this.#list) {
      if (ahead.ordinal <= running) continue
      taken += ahead.taken
      given += ahead.given
      ahead.taken = 0
      ahead.given = 0
    }
    if (taken === 0) return
    const bucket = this.at(running)
    bucket.taken = sumOf(bucket.taken, taken)
    bucket.given = sumOf(bucket.given, given)
  }

  /** Forgets the buckets before `oldest`. */
  dropBefore(oldest: Ordinal): void {
    const list = this.#list
    let gone = 0
    while (gone < list.length && (list[gone] as Bucket).ordinal < oldest) gone++
    if (gone > 0) list.splice(0, gone)
  }

  /** Units in the buckets from `oldest` on and before `end`, as far as known. */
  total(oldest: Ordinal, end: number = Number.POSITIVE_INFINITY): number {
    let sum = 0
    for (const { ordinal, others, taken, given } of this.#list) if (ordinal >= oldest && ordinal < end) sum += others + taken - given
    return sum
  }

  /** What would be left of all units, of own ones and of those not acknowledged if the window began with `oldest`. */
  since(oldest: Ordinal): { readonly sum: number; readonly own: number; readonly unsent: number } {
    let sum = 0
    let own = 0
    let unsent = 0
    for (const bucket of this.#list) {
      if (bucket.ordinal < oldest) continue
      own += bucket.taken - bucket.given
      sum += bucket.others + bucket.taken - bucket.given
      unsent += bucket.taken - bucket.takenSent
    }
    return { sum, own, unsent }
  }

  /** Own net units. */
  own(): number {
    let sum = 0
    for (const { taken, given } of this.#list) sum += taken - given
    return sum
  }

  /** Units of the others. */
  others(): number {
    let sum = 0
    for (const { others } of this.#list) sum += others
    return sum
  }

  /** Own units taken that the store has not acknowledged; those in flight included. */
  unsent(): number {
    let sum = 0
    for (const { taken, takenSent } of this.#list) sum += taken - takenSent
    return sum
  }

  /** Own units in flight. */
  flight(): number {
    let sum = 0
    for (const { flight } of this.#list) sum += flight
    return sum
  }

  /** Whether something was refunded that the store has not acknowledged. */
  givenUnsent(): boolean {
    return this.#list.some(({ given, givenSent }) => given > givenSent)
  }

  /**
   * The buckets with own units that the store has not acknowledged, as they are sent.
   *
   * @param again - also those that it has
   */
  toSend(again: boolean): Cell[] {
    const cells: Cell[] = []
    for (const bucket of this.#list) {
      if (bucket.taken > bucket.takenSent || bucket.given > bucket.givenSent || (again && bucket.taken > 0)) {
        bucket.flight = bucket.taken - bucket.takenSent
        cells.push({ ordinal: bucket.ordinal, taken: bucket.taken, given: bucket.given })
      }
    }
    return cells
  }

  /** Nothing is acknowledged any more: the store lost its data. */
  forgetSent(): void {
    for (const bucket of this.#list) {
      bucket.takenSent = 0
      bucket.givenSent = 0
    }
  }
}
