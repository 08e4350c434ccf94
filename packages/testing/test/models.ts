import type { AlgorithmModel } from '../src/index.ts'

/** At most the limit in each interval since the Unix epoch. */
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

  /** The part of the running interval that has passed. */
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

/** At most the limit in any stretch of the interval's length, plus 2 % of the limit. */
export class SlidingWindowModel implements AlgorithmModel {
  readonly #interval: number
  readonly #buckets: number
  readonly #log: { readonly at: number; units: number }[] = []
  #rejectedAt = Number.NEGATIVE_INFINITY

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

  /** The oldest bucket counts in full. A key that reached its limit opens only when a part of it is free again. */
  least(at: number, limit: number): number {
    const begin = at - this.#interval * (1 + 1 / this.#buckets)
    return this.#rejectedAt > begin ? 0 : limit - this.#since(begin)
  }

  take(at: number, units: number): void {
    this.#log.push({ at, units })
  }

  rejected(at: number): void {
    this.#rejectedAt = at
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

/** At most the limit in windows that each start with the first request after the previous window. */
export class FirstRequestModel implements AlgorithmModel {
  readonly #interval: number
  #start = Number.NEGATIVE_INFINITY
  #units = 0

  constructor(interval: number) {
    this.#interval = interval
  }

  #running(at: number): boolean {
    return at < this.#start + this.#interval && this.#units > 0
  }

  most(at: number, limit: number): number {
    return this.#running(at) ? limit - this.#units : limit
  }

  take(at: number, units: number): void {
    if (!this.#running(at)) {
      this.#start = at
      this.#units = 0
    }
    this.#units = Math.min(Number.MAX_SAFE_INTEGER, this.#units + units)
  }

  refund(at: number, units: number, takenAt: number): void {
    if (this.#running(at) && takenAt >= this.#start) this.#units = Math.max(0, this.#units - units)
  }
}

/** At most the limit in (now - interval, now]. */
export class SlidingLogModel implements AlgorithmModel {
  readonly #interval: number
  readonly #log: { readonly at: number; units: number }[] = []

  constructor(interval: number) {
    this.#interval = interval
  }

  most(at: number, limit: number): number {
    return limit - this.#log.reduce((sum, one) => (one.at > at - this.#interval ? sum + one.units : sum), 0)
  }

  take(at: number, units: number): void {
    this.#log.push({ at, units: Math.min(Number.MAX_SAFE_INTEGER, units) })
  }

  refund(_at: number, units: number, takenAt: number): void {
    let left = units
    for (const entry of this.#log) {
      if (entry.at < takenAt) continue
      const back = Math.min(left, entry.units)
      entry.units -= back
      left -= back
    }
  }
}

/**
 * At most `capacity + limit · t / interval` in any stretch of the length t. The model drains nothing, but checks all stretches that
 * end now.
 */
export class BucketModel implements AlgorithmModel {
  readonly #interval: number
  readonly #capacity: (limit: number) => number
  #slowest = Number.POSITIVE_INFINITY
  #fastest = 0
  #log: { readonly at: number; readonly units: number }[] = []
  least?: (at: number, limit: number) => number

  constructor(interval: number, capacity: (limit: number) => number = (limit) => limit) {
    this.#interval = interval
    this.#capacity = capacity
  }

  most(at: number, limit: number): number {
    this.#slowest = Math.min(this.#slowest, limit)
    this.#fastest = Math.max(this.#fastest, limit)
    // Units stay when the limit changes. The pace at which they drained before depends on when the meter computed the level.
    if (this.#slowest < this.#fastest) this.least = (then, now) => this.#capacity(now) - this.#level(then, this.#slowest)
    return this.#capacity(limit) - this.#level(at, this.#fastest)
  }

  take(at: number, units: number): void {
    this.#log.push({ at, units: Math.min(Number.MAX_SAFE_INTEGER, units) })
  }

  refund(at: number, units: number, takenAt: number): void {
    if (((at - takenAt) * this.#fastest) / this.#interval >= this.#capacity(this.#fastest)) return
    this.#log = [{ at, units: Math.max(0, this.#level(at, this.#fastest) - units) }]
  }

  #level(at: number, limit: number): number {
    let most = 0
    let units = 0
    for (const one of this.#log.toReversed()) {
      units += one.units
      most = Math.max(most, units - ((at - one.at) * limit) / this.#interval)
    }
    return most
  }
}

/**
 * Guava's SmoothWarmingUp: unused permits are saved, and each one takes longer the more of them there are. Times are added up in
 * many small parts.
 */
export class WarmUpModel implements AlgorithmModel {
  readonly #interval: number
  readonly #warmUp: number
  readonly #coldFactor: number
  #limit = 0
  #cold = 1
  #free = Number.NEGATIVE_INFINITY
  /**
   * After a change of the limit the cost of units depends on when the meter computed the key. It is between their number and the
   * cost of cold units.
   */
  readonly #cheap: BucketModel
  readonly #dear: BucketModel
  least?: (at: number, limit: number) => number

  constructor(interval: number, warmUp: number, coldFactor = 3) {
    this.#cheap = new BucketModel(interval)
    this.#dear = new BucketModel(interval)
    this.#interval = interval
    this.#warmUp = warmUp
    this.#coldFactor = coldFactor
  }

  most(at: number, limit: number): number {
    this.#limit = limit
    const most = this.#cheap.most(at, limit)
    this.#dear.most(at, limit)
    if (this.#dear.least !== undefined) {
      this.least = this.#dear.least
      return most
    }
    return limit - (Math.max(0, this.#free - at) * limit) / this.#interval
  }

  take(at: number, units: number): void {
    this.#cheap.take(at, units)
    this.#dear.take(at, units * this.#coldFactor)
    const stable = this.#interval / this.#limit
    const threshold = (0.5 * this.#warmUp) / stable
    const most = threshold + (2 * this.#warmUp) / (stable * (1 + this.#coldFactor))
    if (at > this.#free) {
      this.#cold = Math.min(1, this.#cold + (at - this.#free) / this.#warmUp)
      this.#free = at
    }
    const saved = this.#cold * most
    const spent = Math.min(saved, units)
    const timeOf = (permits: number) => stable * (1 + ((this.#coldFactor - 1) * Math.max(0, permits - threshold)) / (most - threshold))
    // The line is straight above the threshold and below it, so between them the mean is exact.
    const corner = Math.min(saved, Math.max(saved - spent, threshold))
    const upper = (saved - corner) * timeOf((saved + corner) / 2)
    this.#free += upper + (corner - (saved - spent) + units - spent) * stable
    this.#cold = (saved - spent) / most
  }

  refund(): void {
    throw new Error('What comes back to a bucket that warms up is held against its step.')
  }
}
