import { sumOf } from '../../store/units.ts'
import { type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import type { StoreTime } from '../../time/store-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { EARLY, nextRoll, runningAt } from '../roll.ts'
import { slackOf, wholeWait } from '../whole-wait.ts'
import { EARLY_RELEASE } from './cells.ts'

/** Fields before a key's subWindows. */
const HEAD = 2

/**
 * Sliding windows of this process alone. Unlike `BackgroundSlidingWindow`, a key opens as soon as a request fits, because no other process
 * is involved. For each key, with B the policy's subWindows and n = B + 3:
 *
 *     fields[slot * n]      the ordinal of the sub-window to which the key was last moved
 *     fields[slot * n + 1]  units in the B + 1 sub-windows up to it
 *     fields[slot * n + 2 + o % (B + 1)]  units in the sub-window `o`
 */
export class LocalSlidingWindow extends LocalMeter {
  readonly #time: StoreTime
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected readonly stride: number
  protected readonly subWindows: number
  protected readonly width: number
  protected ordinal = 0 as Ordinal
  /** The index of the running sub-window's units among a key's numbers, and of the leaving one's. */
  protected running: number = HEAD
  protected leaving: number = HEAD
  /** When the running sub-window ends, on the monotonic clock. */
  protected ends = 0

  /**
   * @param time the clock that the sub-windows follow
   * @param subWindows parts of the interval
   */
  constructor(site: MeterSite, time: StoreTime, subWindows: number) {
    super(site)
    this.#time = time
    this.stride = site.table.stride
    this.subWindows = subWindows
    this.width = site.policy.interval / subWindows
  }

  static fieldsFor(subWindows: number): number {
    return HEAD + subWindows + 1
  }

  override roll(now: number): void {
    const before = this.ordinal
    const ordinal = runningAt(this.#time, before, this.rollAt, this.width, now)
    // The ordinal never goes back: units stay in the sub-window in which they were counted.
    if (ordinal > before) {
      this.ordinal = ordinal
      this.running = this.#indexOf(0, ordinal)
      this.leaving = this.#indexOf(0, ordinal - this.subWindows)
      this.site.movedTo(ordinal)
    }
    this.rollAt = nextRoll(this.#time, this.ordinal, this.width, now, ordinal > before ? undefined : this.rollAt)
    this.ends = this.rollAt
  }

  /**
   * Counts a request to a key that was used in the running sub-window, if it fits even with nothing released. Numbers replace imported
   * constants.
   */
  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const base = slot * this.stride
    const units = fields[base + 1] as number
    if (fields[base] !== this.ordinal || units === 0 || !(units + cost <= this.limit) || ((flags[slot] as number) & 4) !== 0) {
      return super.take(slot, cost, now)
    }
    const at = base + this.running
    fields[at] = (fields[at] as number) + cost
    fields[base + 1] = units + cost
    this.allowed += cost
    return fields[base + this.leaving] === 0 ? this.limit - (units + cost) : super.remaining(slot, now)
  }

  override remaining(slot: number, now: number): number {
    const { fields } = this.site.table
    const base = slot * this.stride
    if (this.limit < 0 || fields[base] !== this.ordinal || fields[base + this.leaving] !== 0) return super.remaining(slot, now)
    return Math.max(0, this.limit - (fields[base + 1] as number))
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    return this.#used(slot, limit, now) + cost <= limit + slackOf(limit)
  }

  protected override count(slot: number, cost: number): void {
    this.#count(this.#advance(slot), cost)
  }

  protected override countIfAllowed(slot: number, cost: number, limit: number, now: number): boolean {
    const base = this.#advance(slot)
    // Most requests fit even with nothing released.
    if ((this.fields[base + 1] as number) + cost > limit && !this.hasCapacity(slot, cost, limit, now)) return false
    this.#count(base, cost)
    return true
  }

  over(slot: number, now: number): number {
    const limit = this.site.limitOf(slot)
    return Math.max(0, this.#used(slot, limit, now) - limit)
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, limit, now))
  }

  /** The sub-windows leave one after the other. The first units of the oldest one are released while it leaves. */
  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const base = this.#advance(slot)
    const room = limit - cost + slackOf(limit) / 2
    let units = this.fields[base + 1] as number
    for (let oldest = this.ordinal - this.subWindows; oldest <= this.ordinal; oldest++) {
      const leaving = this.fields[this.#indexOf(base, oldest)] as number
      const excess = units - room
      if (excess <= Math.min(EARLY_RELEASE * limit, leaving)) {
        const begins = (oldest + this.subWindows) as Ordinal
        const part = excess > 0 ? excess / leaving : 0
        return this.#until(begins, part, now)
      }
      units -= leaving
    }
    return this.#until((this.ordinal + this.subWindows + 1) as Ordinal, 0, now)
  }

  override resetAfterMs(slot: number, now: number): number {
    const { fields } = this.site.table
    const base = slot * this.stride
    if (fields[base] !== this.ordinal) this.#advance(slot)
    if (fields[base + 1] === 0) return 0
    let whole = this.subWindows
    // Usually `take` has just counted in the running sub-window.
    if (fields[base + this.running] === 0) while (fields[this.#indexOf(base, this.ordinal + whole - this.subWindows)] === 0) whole--
    return this.ends - now + whole * this.width
  }

  protected override idle(slot: number): boolean {
    return this.ordinal - (this.fields[slot * this.stride] as number) > this.subWindows
  }

  protected override unused(slot: number): boolean {
    return this.fields[this.#advance(slot) + 1] === 0
  }

  protected override giveBack(slot: number, takenIn: Ordinal, units: number): void {
    const base = this.#advance(slot)
    // Units taken by a clock that was ahead count in the running sub-window.
    const ordinal = Math.min(takenIn, this.ordinal)
    if (ordinal < this.ordinal - this.subWindows) return
    const index = this.#indexOf(base, ordinal)
    this.fields[index] = Math.max(0, (this.fields[index] as number) - units)
    this.#sum(base)
  }

  override refundNewest(slot: number, units: number): number {
    const base = this.#advance(slot)
    let back = 0
    for (let ordinal: number = this.ordinal; ordinal >= this.ordinal - this.subWindows; ordinal--) {
      const index = this.#indexOf(base, ordinal)
      const more = Math.min(units - back, this.fields[index] as number)
      this.fields[index] = (this.fields[index] as number) - more
      back += more
    }
    this.#sum(base)
    return back
  }

  /** Milliseconds until a part of a sub-window has passed. */
  #until(ordinal: Ordinal, part: number, now: number): number {
    const opens = startOf(ordinal, this.width) + part * this.width
    return wholeWait(this.#time.monotonicAt(opens) - now, (after) => {
      const at = this.#time.at(now + after)
      return part === 0 ? ordinalAt(at + EARLY, this.width) >= ordinal : (at - startOf(ordinal, this.width)) / this.width >= part
    })
  }

  /** Units that count at `now`: the units of all sub-windows, less the released part of the oldest one. */
  #used(slot: number, limit: number, now: number): number {
    const base = this.#advance(slot)
    const leaving = this.fields[this.#indexOf(base, this.ordinal - this.subWindows)] as number
    const units = this.fields[base + 1] as number
    if (leaving === 0) return units
    const over = (this.#time.at(now) - startOf(this.ordinal, this.width)) / this.width
    return units - Math.min(EARLY_RELEASE * limit, leaving * Math.min(1, Math.max(0, over)))
  }

  /** Empties the sub-windows that the window has left. Returns the index of the key's first number. */
  #advance(slot: number): number {
    const base = slot * this.stride
    const last = this.fields[base] as number
    if (last === this.ordinal) return base
    for (let ordinal = Math.max(last, this.ordinal - this.subWindows - 1) + 1; ordinal <= this.ordinal; ordinal++) {
      this.fields[this.#indexOf(base, ordinal)] = 0
    }
    this.fields[base] = this.ordinal
    this.#sum(base)
    return base
  }

  #count(base: number, units: number): void {
    const { fields } = this
    const index = this.#indexOf(base, this.ordinal)
    fields[index] = sumOf(fields[index] as number, units)
    fields[base + 1] = sumOf(fields[base + 1] as number, units)
  }

  /** Adds the sub-windows up. Differences would leave an error with fractions. */
  #sum(base: number): void {
    const { fields } = this
    let sum = 0
    for (let ordinal: number = this.ordinal; ordinal >= this.ordinal - this.subWindows; ordinal--) {
      sum = sumOf(sum, fields[this.#indexOf(base, ordinal)] as number)
    }
    fields[base + 1] = sum
  }

  #indexOf(base: number, ordinal: number): number {
    const most = this.subWindows + 1
    // Sub-windows before the epoch have negative ordinals.
    return base + HEAD + (((ordinal % most) + most) % most)
  }
}
