/** Demand counts as more than the limit's pace from this multiple of it. */
const MORE = 1.02
/** The part of the capacity at which the level is kept, and the range around it in which the pace changes. */
const TARGET = 0.8
const SLOPE = 0.5
/** Below this part, demand may have fallen: full bursts are allowed again until the bucket is full once more. */
const DISARMED = 0.5
/** Intervals for which it lasts after the last sign of more demand than the limit. */
const LASTS = 2

/** Recent units per millisecond: an exponentially weighted mean without a bias at the beginning. */
class Mean {
  #units = 0
  #time = 0

  add(units: number, elapsed: number, constant: number): void {
    const decay = Math.exp(-elapsed / constant)
    this.#units = this.#units * decay + units
    this.#time = this.#time * decay + elapsed
  }

  get value(): number {
    return this.#time > 0 ? this.#units / this.#time : 0
  }
}

/** The parameters of a bucket. Rates are units per millisecond. */
export interface Shape {
  readonly most: number
  readonly drain: number
  /** The policy's, in milliseconds. */
  readonly interval: number
}

/**
 * `earlyDrop: true`: while confirmed demand is above the limit's pace, requests are allowed at random, as many as keep the bucket at four
 * fifths. So the key neither fills up nor closes, and there is no debt, however far the store is. It is an estimate: a burst that just fits
 * may be rejected in part. The demand for a key comes with the syncs. Times are of the monotonic clock.
 */
export class EarlyDrop {
  /** Over a tenth of an interval, and over an interval or the time that a full bucket takes to drain. */
  readonly #short = new Mean()
  readonly #long = new Mean()
  #asked = 0
  #sentAt: number = Number.NEGATIVE_INFINITY
  #until: number = Number.NEGATIVE_INFINITY
  /** Requests that were due by the pace and not allowed at random yet. */
  #credit = 0

  /**
   * The store has answered.
   *
   * @param asked - units of all processes that it has received, rejected ones included
   */
  answered(asked: number, sent: number, { most, drain, interval }: Shape, now: number): void {
    const elapsed = sent - this.#sentAt
    // A smaller number means that the store has lost its data.
    if (elapsed > 0 && elapsed < Number.POSITIVE_INFINITY && asked >= this.#asked) {
      this.#short.add(asked - this.#asked, elapsed, interval / 10)
      this.#long.add(asked - this.#asked, elapsed, Math.max(interval, most / drain))
    }
    this.#asked = asked
    this.#sentAt = sent
    if (now < this.#until && this.#short.value > MORE * drain) this.arm(now, interval)
  }

  /** The bucket is full, or closed until `from`. */
  arm(from: number, interval: number): void {
    this.#until = Math.max(this.#until, from + LASTS * interval)
  }

  /** Whether the bucket was full lately. */
  armed(now: number): boolean {
    return now < this.#until
  }

  /**
   * Whether requests are allowed at random now.
   *
   * @param level - as expected now
   */
  active(level: number, { most, drain }: Shape, now: number): boolean {
    if (now >= this.#until) return false
    if (level <= DISARMED * most) {
      this.#until = Number.NEGATIVE_INFINITY
      return false
    }
    return Math.min(this.#short.value, this.#long.value) > MORE * drain
  }

  /** Whether a request is allowed, while `active`. Randomness decides which one, but not the pace. */
  allows(level: number, { most, drain }: Shape, random: number): boolean {
    const pace = Math.max(0, drain * (1 + (TARGET - level / most) / SLOPE))
    this.#credit += Math.min(1, pace / this.#short.value)
    if (this.#credit <= random) return false
    this.#credit--
    return true
  }
}
