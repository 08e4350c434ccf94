import { MOST_UNITS, sumOf } from '../../store/units.ts'

/** Times that fit into the first ring. A power of 2, as all sizes of rings. */
const SMALLEST = 8

/** The log of one key whose requests cost any units: their times and units, oldest first, in a ring. */
export class WeightedLog {
  /** Units in it. */
  used = 0
  /** Times in it. */
  size = 0
  #head = 0
  /** time, units, time, units, … */
  #ring: number[] = new Array(2 * SMALLEST).fill(0.5)
  /** Whether differences alone would make `used` wrong: with fractions, or with more than can be added exactly. */
  #inexact = false
  /** Differences since `used` was summed up. */
  #differences = 0
  /** For `undo`. */
  #usedBefore = 0
  #pushed = false
  #timeBefore = 0
  #unitsBefore = 0

  /** The newest time. The log must not be empty. */
  get newest(): number {
    return this.#ring[this.#place(this.size - 1)] as number
  }

  /**
   * Adds units, which are at most `MOST_UNITS`.
   *
   * @param most times to keep: beyond them the newest one takes further units in
   */
  push(now: number, units: number, most: number): void {
    this.#usedBefore = this.used
    const newest = this.#place(this.size - 1)
    this.#pushed = this.size === 0 || (this.#ring[newest] !== now && this.size < most)
    if (this.#pushed) {
      if (2 * this.size === this.#ring.length) this.#widen()
      const place = this.#place(this.size++)
      this.#ring[place] = now
      this.#ring[place + 1] = units
    } else {
      this.#timeBefore = this.#ring[newest] as number
      this.#unitsBefore = this.#ring[newest + 1] as number
      this.#ring[newest] = now
      this.#ring[newest + 1] = sumOf(this.#unitsBefore, units)
    }
    this.used = sumOf(this.used, units)
    if (!Number.isInteger(units) || this.used === MOST_UNITS) this.#inexact = true
  }

  /** Undoes the last `push`, if nothing has come since. */
  undo(): void {
    this.used = this.#usedBefore
    if (this.#pushed) this.size--
    else {
      const newest = this.#place(this.size - 1)
      this.#ring[newest] = this.#timeBefore
      this.#ring[newest + 1] = this.#unitsBefore
    }
  }

  /** Removes times that are `interval` old. */
  forget(now: number, interval: number): void {
    while (this.size > 0 && now - (this.#ring[this.#head] as number) >= interval) {
      const units = this.#ring[this.#head + 1] as number
      this.#head = (this.#head + 2) & (this.#ring.length - 1)
      this.size--
      this.used -= units
      // A difference leaves an error of at most a part in 2^53 of its operands. As many differences as there are times do no harm, and a
      // new sum then costs no more than they did. But a difference larger than all that is left would.
      if (this.#inexact && (++this.#differences >= this.size || units > this.used)) this.#sum()
    }
    if (this.size === 0) {
      this.used = 0
      this.#inexact = false
    }
  }

  /** When `excess` units have begun to leave, the oldest first. */
  leaves(excess: number): number {
    let units = 0
    let place = 0
    for (let at = 0; at < this.size && !(units >= excess && at > 0); at++) {
      place = this.#place(at)
      units = sumOf(units, this.#ring[place + 1] as number)
    }
    return this.#ring[place] as number
  }

  /** Removes units that were added from `takenAt` on. */
  giveBack(takenAt: number, units: number): void {
    let first = this.size
    while (first > 0 && (this.#ring[this.#place(first - 1)] as number) >= takenAt) first--
    let left = units
    let kept = first
    for (let at = first; at < this.size; at++) {
      const place = this.#place(at)
      const own = this.#ring[place + 1] as number
      const back = Math.min(left, own)
      left -= back
      if (own - back <= 0) continue
      const to = this.#place(kept++)
      this.#ring[to] = this.#ring[place] as number
      this.#ring[to + 1] = own - back
    }
    this.size = kept
    if (!Number.isInteger(units)) this.#inexact = true
    this.#sum()
  }

  #sum(): void {
    this.used = 0
    this.#differences = 0
    for (let at = 0; at < this.size; at++) this.used = sumOf(this.used, this.#ring[this.#place(at) + 1] as number)
  }

  #place(at: number): number {
    return (this.#head + 2 * at) & (this.#ring.length - 1)
  }

  #widen(): void {
    const wider: number[] = new Array(2 * this.#ring.length).fill(0.5)
    for (let at = 0; at < this.#ring.length; at++) wider[at] = this.#ring[(this.#head + at) & (this.#ring.length - 1)] as number
    this.#ring = wider
    this.#head = 0
  }
}
