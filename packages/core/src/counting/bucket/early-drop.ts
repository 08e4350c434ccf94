/** Demand counts as more than the limit's pace from here on, as a part of it. */
const MORE = 1.02
/** The part of a bucket at which its level is held, and within which of it the pace changes by itself. */
const TARGET = 0.8
const SLOPE = 0.5
/** Where demand may have fallen: full bursts pass again until the bucket is full once more. */
const DISARMED = 0.5
/** Intervals for which it lasts after the last sign of more demand than the limit. */
const LASTS = 2

/** Units per millisecond of late: an exponentially weighted mean without a bias at the beginning. */
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

/** What a bucket is. Rates are units per millisecond. */
export interface Shape {
  readonly most: number
  readonly drain: number
  /** Of the policy, in milliseconds. */
  readonly interval: number
}

/**
 * `earlyDrop: true`: once more is asked for than the limit's pace, and known to be, requests are let in by chance, as many as keep the bucket at
 * four fifths. So the key neither fills up nor closes, and no debt arises, however far the store is. It is an estimate: bursts that
 * just fit may be rejected in part. What a key is asked for comes with the exchanges. Times are of the monotonic clock.
 */
export class EarlyDrop {
  /** Of an interval's tenth, and of an interval or the time that a full bucket takes to run out. */
  readonly #short = new Mean()
  readonly #long = new Mean()
  #asked = 0
  #sentAt: number = Number.NEGATIVE_INFINITY
  #until: number = Number.NEGATIVE_INFINITY
  /** What was to be let in by chance and was not. */
  #credit = 0

  /**
   * The store has answered.
   *
   * @param asked - units of all nodes that it has heard of, rejected ones included
   */
  answered(asked: number, sent: number, { most, drain, interval }: Shape, now: number): void {
    const elapsed = sent - this.#sentAt
    // Less than before: the store has lost its data.
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
   * Whether requests are let in by chance now.
   *
   * @param level - as it is expected to be
   */
  active(level: number, { most, drain }: Shape, now: number): boolean {
    if (now >= this.#until) return false
    if (level <= DISARMED * most) {
      this.#until = Number.NEGATIVE_INFINITY
      return false
    }
    return Math.min(this.#short.value, this.#long.value) > MORE * drain
  }

  /** Whether a request is let in, while `active`. Chance decides about the next one, and not about the pace. */
  allows(level: number, { most, drain }: Shape, random: number): boolean {
    const pace = Math.max(0, drain * (1 + (TARGET - level / most) / SLOPE))
    this.#credit += Math.min(1, pace / this.#short.value)
    if (this.#credit <= random) return false
    this.#credit--
    return true
  }
}
