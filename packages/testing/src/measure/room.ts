import { LeakyLevel } from './reference.ts'

/**
 * Whether there was room for a unit, by the true counts and the window's own definition. A limiter that refuses
 * only what is known to exceed the limit never refuses while there is room.
 */
export interface Room {
  /** Whether a request of this cost fits; to be asked for each request, before `took`. Times don't go back. */
  fits(time: number, cost: number): boolean
  /** Units were really admitted. */
  took(time: number, units: number): void
  /** Units in a bucket. */
  level?(time: number): number
}

/** An interval aligned to the epoch has room while less than the limit was admitted in it. */
export class FixedRoom implements Room {
  readonly #limit: number
  readonly #interval: number
  #end = Number.NEGATIVE_INFINITY
  #used = 0

  constructor(limit: number, interval: number) {
    this.#limit = limit
    this.#interval = interval
  }

  fits(time: number, cost: number): boolean {
    this.#roll(time)
    return this.#used + cost <= this.#limit
  }

  took(time: number, units: number): void {
    this.#roll(time)
    this.#used += units
  }

  #roll(time: number): void {
    if (time < this.#end) return
    this.#end = (Math.floor(time / this.#interval) + 1) * this.#interval
    this.#used = 0
  }
}

/** How a sliding window is cut and reopened. */
export interface BucketShape {
  /** Buckets per interval. */
  readonly buckets: number
  /** A key that was closed opens again when so large a part of the limit is free. */
  readonly reopen: number
}

/**
 * A sliding window of buckets. The oldest bucket counts in full but for a small early release; once there is no room,
 * the window stays closed until a part of the limit is free again.
 */
export class BucketRoom implements Room {
  readonly #limit: number
  readonly #width: number
  readonly #buckets: number
  readonly #release: number
  readonly #opensAt: number
  readonly #counts: Float64Array
  #newest = Number.NEGATIVE_INFINITY
  #sum = 0
  #closed = false

  constructor(limit: number, interval: number, shape: BucketShape) {
    this.#limit = limit
    this.#buckets = shape.buckets
    this.#width = interval / shape.buckets
    this.#release = EARLY_RELEASE * limit
    this.#opensAt = limit - Math.max(1, shape.reopen * limit)
    this.#counts = new Float64Array(shape.buckets + 1)
  }

  fits(time: number, cost: number): boolean {
    const used = this.#usedAt(time)
    if (this.#closed && used <= this.#opensAt) this.#closed = false
    if (used + cost > this.#limit) {
      // As with a cooldown: a request that is too expensive closes nothing for those that fit.
      if (used + Math.min(1, cost) > this.#limit) this.#closed = true
      return false
    }
    return !this.#closed
  }

  took(time: number, units: number): void {
    this.#usedAt(time)
    const place = this.#newest % this.#counts.length
    this.#counts[place] = (this.#counts[place] as number) + units
    this.#sum += units
  }

  #usedAt(time: number): number {
    // A clock that steps back leaves the window where it was.
    const bucket = Math.max(Math.floor(time / this.#width), this.#newest)
    const size = this.#counts.length
    if (bucket - this.#newest >= size) {
      this.#counts.fill(0)
      this.#sum = 0
      this.#newest = bucket
    }
    while (this.#newest < bucket) {
      this.#newest++
      const place = this.#newest % size
      this.#sum -= this.#counts[place] as number
      this.#counts[place] = 0
    }
    const oldest = this.#counts[(bucket - this.#buckets + size) % size] as number
    return this.#sum - Math.min(this.#release, oldest * Math.max(0, time / this.#width - bucket))
  }
}

/**
 * A bucket. Once a unit more would be too much it stays closed until a tenth of what it holds is free, or a twentieth of the limit; half
 * of it at most, and at least one unit.
 */
export class LeakyRoom implements Room {
  readonly #level: LeakyLevel
  readonly #most: number
  readonly #opensAt: number
  #closed = false

  /** @param most - units that the bucket holds */
  constructor(limit: number, interval: number, most: number) {
    this.#level = new LeakyLevel(limit, interval)
    this.#most = most
    this.#opensAt = most - Math.max(1, Math.min(most / 2, Math.max(0.1 * most, limit / 20)))
  }

  fits(time: number, cost: number): boolean {
    const level = this.#level.at(time)
    const slack = this.#most * 1e-9
    if (this.#closed && level <= this.#opensAt - slack) this.#closed = false
    if (level + Math.min(1, cost) > this.#most + slack) this.#closed = true
    return !this.#closed && level + cost <= this.#most - slack
  }

  took(time: number, units: number): void {
    this.#level.add(time, units)
  }

  level(time: number): number {
    return this.#level.at(time)
  }
}

/** Part of the limit that the oldest bucket may release before it has passed. */
const EARLY_RELEASE = 0.02
