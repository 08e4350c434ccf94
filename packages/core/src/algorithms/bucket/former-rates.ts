import type { KeyTable } from '../../keys/key-table.ts'
import { Slices } from '../../keys/slices.ts'
import { drained } from './step.ts'

/** Changes of the limit that may be pending while keys are updated in slices. The next change first updates all keys. */
const MOST_BEFORE = 8

/** An earlier limit, and the time until which buckets drained at its rate. */
export interface FormerRate {
  readonly rate: number
  readonly until: number
}

/** Earlier limits, at whose rates buckets drained until each change. Keys are updated to the current limit in slices. */
export class FormerRates {
  /** Oldest first. Empty if all keys drain at the current limit. */
  list: readonly FormerRate[] = []
  readonly #slices: Slices

  /**
   * @param bring updates a key to the last change
   * @param ended is called after the last key
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

  /** Units that are left of `level`, the units at the time `at`. */
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
