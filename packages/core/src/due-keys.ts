import type { Batch } from './batch.ts'
import type { Counter } from './counter.ts'

/** Timers fire on whole milliseconds; what is due within this time travels along. */
const EPSILON = 0.5

/** Keys that asked for an exchange, in the order in which they did: parallel arrays, as many may ask at once. */
export class DueKeys {
  #counters: Counter[] = []
  #slots: number[] = []
  #times: number[] = []

  get waiting(): boolean {
    return this.#slots.length > 0
  }

  /** When the first one is due, on the monotonic clock; infinite where none is. */
  get next(): number {
    let next = Number.POSITIVE_INFINITY
    for (const at of this.#times) next = Math.min(next, at)
    return next
  }

  add(counter: Counter, slot: number, at: number): void {
    this.#counters.push(counter)
    this.#slots.push(slot)
    this.#times.push(at)
  }

  /** Moves what is due into a batch, as long as there is room in it. */
  collect(now: number, batch: Batch): void {
    if (!this.waiting) return
    const counters = this.#counters
    const slots = this.#slots
    const times = this.#times
    this.#clear()
    for (let i = 0; i < counters.length; i++) {
      const counter = counters[i] as Counter
      const slot = slots[i] as number
      const at = times[i] as number
      if (at <= now + EPSILON && !batch.full) counter.collect(slot, now, batch)
      else this.add(counter, slot, at)
    }
  }

  /** None of them gets an exchange, as the store is away. */
  drop(): void {
    const counters = this.#counters
    const slots = this.#slots
    this.#clear()
    for (let i = 0; i < counters.length; i++) (counters[i] as Counter).undue(slots[i] as number)
  }

  #clear(): void {
    this.#counters = []
    this.#slots = []
    this.#times = []
  }
}
