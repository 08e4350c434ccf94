import type { KeyTable } from '../../keys/key-table.ts'
import { Slices } from '../shared/slices.ts'
import { drained } from './step.ts'

/** Changes of the limit that are looked at one by one while keys are brought to the last one; with the next, all of them are at once. */
const MOST_BEFORE = 8

/** A limit of before, and until when buckets ran out by it. */
export interface FormerRate {
  readonly rate: number
  readonly until: number
}

/** The limits of before, by which buckets ran out until they changed. Keys are brought to the limit of now in slices. */
export class FormerRates {
  /** Oldest first; none once all keys go by the limit of now. */
  list: readonly FormerRate[] = []
  readonly #slices: Slices

  /**
   * @param bring has a key go by the limit of now
   * @param ended is called when all of them do
   */
  constructor(table: KeyTable, defer: (run: () => void) => void, bring: (slot: number, last: FormerRate) => void, ended: () => void) {
    const visit = (slot: number): void => {
      const last = this.list.at(-1)
      if (last !== undefined) bring(slot, last)
    }
    this.#slices = new Slices(table, defer, visit, () => {
      if (this.list.length === 0) return
      this.list = []
      ended()
    })
  }

  /** The limit was `rate` until now. */
  changed(rate: number, now: number): void {
    if (this.list.length === MOST_BEFORE) this.#slices.finish()
    this.list = [...this.list, { rate, until: now }]
    this.#slices.begin()
  }

  /** Units of `level`, which a bucket held at `at`, that are still in it. */
  level(level: number, at: number, pace: number, now: number, interval: number): number {
    let left = level
    let since = at
    for (const { rate, until } of this.list) {
      if (since >= until) continue
      left = drained(left, until - since, rate, interval)
      since = until
    }
    return drained(left, now - since, pace, interval)
  }
}
