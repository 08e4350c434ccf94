import type { AlgorithmModel } from '../src/index.ts'

/** At most the limit in each interval of the epoch. */
export class FixedWindowModel implements AlgorithmModel {
  readonly #interval: number
  readonly #units = new Map<number, number>()

  constructor(interval: number) {
    this.#interval = interval
  }

  protected unitsOf(ordinal: number): number {
    return this.#units.get(ordinal) ?? 0
  }

  protected ordinalAt(at: number): number {
    return Math.floor(at / this.#interval)
  }

  /** The part of the running interval that is over. */
  protected elapsed(at: number): number {
    return (at % this.#interval) / this.#interval
  }

  most(at: number, limit: number): number {
    return limit - this.unitsOf(this.ordinalAt(at))
  }

  take(at: number, units: number): void {
    const ordinal = this.ordinalAt(at)
    this.#units.set(ordinal, Math.min(Number.MAX_SAFE_INTEGER, this.unitsOf(ordinal) + units))
  }

  refund(_at: number, units: number, takenAt: number): void {
    this.take(takenAt, -units)
  }
}

/** At most the limit of previous · (1 − elapsed) + current. */
export class SlidingCounterModel extends FixedWindowModel {
  override most(at: number, limit: number): number {
    const ordinal = this.ordinalAt(at)
    return limit - this.unitsOf(ordinal - 1) * (1 - this.elapsed(at)) - this.unitsOf(ordinal)
  }
}

/** No more than the limit in any stretch of the interval's length, and 2 % of the limit. */
export class SlidingWindowModel implements AlgorithmModel {
  readonly #interval: number
  readonly #buckets: number
  readonly #log: { readonly at: number; units: number }[] = []
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(interval: number, buckets: number) {
    this.#interval = interval
    this.#buckets = buckets
  }

  #since(begin: number): number {
    return this.#log.reduce((sum, { at, units }) => (at > begin ? sum + units : sum), 0)
  }

  most(at: number, limit: number): number {
    return 1.02 * limit - this.#since(at - this.#interval)
  }

  /** The oldest bucket counts in full; and what reached its limit opens when a part of it is free again. */
  least(at: number, limit: number): number {
    const begin = at - this.#interval * (1 + 1 / this.#buckets)
    return this.#refusedAt > begin ? 0 : limit - this.#since(begin)
  }

  take(at: number, units: number): void {
    this.#log.push({ at, units })
  }

  refused(at: number): void {
    this.#refusedAt = at
  }

  refund(_at: number, units: number, takenAt: number): void {
    let left = units
    for (const entry of this.#log) {
      if (entry.at !== takenAt) continue
      const back = Math.min(left, entry.units)
      entry.units -= back
      left -= back
    }
  }
}
