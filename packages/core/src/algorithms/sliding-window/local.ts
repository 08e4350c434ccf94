import { sumOf } from '../../keys/units.ts'
import { type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import type { StoreTime } from '../../time/store-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { nextRoll } from '../roll.ts'
import { EARLY_RELEASE } from './cells.ts'

/** Times of the epoch have fractions of about this: a request that comes when it was told to must fit. Milliseconds. */
const ROUNDING = 0.001

/** Fields before a key's buckets. */
const HEAD = 2

/**
 * Sliding windows of this process alone: as `BackgroundSlidingWindow`, but a key is open as soon as there is room, since nobody
 * must be told. Of each key, with B the policy's buckets and n = B + 3:
 *
 *     fields[slot * n]              the ordinal of the last bucket in use
 *     fields[slot * n + 1]          units in the B + 1 buckets up to it
 *     fields[slot * n + 2 + o % (B + 1)]  units in the bucket `o`
 */
export class LocalSlidingWindow extends LocalMeter {
  readonly #time: StoreTime
  readonly #buckets: number
  readonly #width: number
  #ordinal = 0 as Ordinal

  /**
   * @param time the clock whose epoch the buckets are of
   * @param buckets parts of the interval
   */
  constructor(site: MeterSite, time: StoreTime, buckets: number) {
    super(site)
    this.#time = time
    this.#buckets = buckets
    this.#width = site.policy.interval / buckets
  }

  static fieldsFor(buckets: number): number {
    return HEAD + buckets + 1
  }

  override roll(now: number): void {
    const ordinal = ordinalAt(this.#time.at(now), this.#width)
    // A node's ordinal never goes back: what is counted stays in the bucket that it was counted in.
    if (ordinal > this.#ordinal) {
      this.#ordinal = ordinal
      this.site.movedTo(ordinal)
    }
    this.rollAt = nextRoll(this.#time, this.#ordinal, this.#width, now)
  }

  protected override allows(slot: number, cost: number, limit: number, now: number): boolean {
    return this.#used(slot, limit, now) + cost <= limit
  }

  protected override count(slot: number, cost: number): void {
    this.#add(this.#advance(slot), this.#ordinal, cost)
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, limit, now))
  }

  /** The buckets leave one after the other, the oldest one's first units as it does. */
  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const base = this.#advance(slot)
    let units = this.fields[base + 1] as number
    for (let oldest = this.#ordinal - this.#buckets; oldest <= this.#ordinal; oldest++) {
      const leaving = this.fields[this.#indexOf(base, oldest)] as number
      const excess = units - (limit - cost)
      if (excess <= Math.min(EARLY_RELEASE * limit, leaving)) {
        const opens = startOf((oldest + this.#buckets) as Ordinal, this.#width) + (excess > 0 ? (excess / leaving) * this.#width : 0)
        return this.#until(opens, now)
      }
      units -= leaving
    }
    return this.#until(startOf((this.#ordinal + this.#buckets + 1) as Ordinal, this.#width), now)
  }

  override resetAfter(slot: number, now: number): number {
    const base = this.#advance(slot)
    for (let oldest = this.#ordinal - this.#buckets; oldest <= this.#ordinal; oldest++) {
      if ((this.fields[this.#indexOf(base, oldest)] as number) > 0) {
        return this.#until(startOf((oldest + this.#buckets + 1) as Ordinal, this.#width), now)
      }
    }
    return this.site.policy.interval
  }

  protected override idle(slot: number): boolean {
    return this.#ordinal - (this.fields[slot * this.site.table.stride] as number) > this.#buckets
  }

  protected override giveBack(slot: number, takenIn: Ordinal, units: number): void {
    const base = this.#advance(slot)
    // Taken by a clock that was ahead, they count in the running bucket.
    const ordinal = Math.min(takenIn, this.#ordinal)
    if (ordinal >= this.#ordinal - this.#buckets) this.#add(base, ordinal, -units)
  }

  #until(time: number, now: number): number {
    return Math.max(0, this.#time.monotonicAt(time) - now) + ROUNDING
  }

  /** What counts at a moment: all buckets, less what is released of the oldest one while it leaves. */
  #used(slot: number, limit: number, now: number): number {
    const base = this.#advance(slot)
    const leaving = this.fields[this.#indexOf(base, this.#ordinal - this.#buckets)] as number
    const units = this.fields[base + 1] as number
    if (leaving === 0) return units
    const over = (this.#time.at(now) - startOf(this.#ordinal, this.#width)) / this.#width
    return units - Math.min(EARLY_RELEASE * limit, leaving * Math.min(1, Math.max(0, over)))
  }

  /** Empties the buckets that the window has left. Returns where the key's numbers begin. */
  #advance(slot: number): number {
    const base = slot * this.site.table.stride
    const last = this.fields[base] as number
    if (last === this.#ordinal) return base
    for (let ordinal = Math.max(last, this.#ordinal - this.#buckets - 1) + 1; ordinal <= this.#ordinal; ordinal++) {
      this.fields[this.#indexOf(base, ordinal)] = 0
    }
    this.fields[base] = this.#ordinal
    this.#add(base, this.#ordinal, 0)
    return base
  }

  #add(base: number, ordinal: number, units: number): void {
    const { fields } = this
    const index = this.#indexOf(base, ordinal)
    fields[index] = Math.max(0, sumOf(fields[index] as number, units))
    // Not as a difference: fractions would leave a little behind.
    let sum = 0
    for (let bucket = 0; bucket <= this.#buckets; bucket++) sum = sumOf(sum, fields[base + HEAD + bucket] as number)
    fields[base + 1] = sum
  }

  #indexOf(base: number, ordinal: number): number {
    return base + HEAD + (ordinal % (this.#buckets + 1))
  }
}
