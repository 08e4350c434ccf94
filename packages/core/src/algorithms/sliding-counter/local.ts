import { sumOf } from '../../store/units.ts'
import { endOf, type Ordinal } from '../../time/intervals.ts'
import type { StoreTime } from '../../time/store-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { nextRoll, runningAt } from '../roll.ts'
import { slackOf, wholeMilliseconds } from '../whole-wait.ts'
import { aheadOf, weighted } from './step.ts'

/**
 * The weighted counter of two fixed windows in this process alone. For each key:
 *
 *     fields[slot * 3]      units taken in the interval before the last one in use
 *     fields[slot * 3 + 1]  units taken in the last one
 *     fields[slot * 3 + 2]  the last one's ordinal
 */
export class LocalSlidingCounter extends LocalMeter {
  readonly #time: StoreTime
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected ordinal = 0 as Ordinal

  /** @param time the clock that the intervals follow */
  constructor(site: MeterSite, time: StoreTime) {
    super(site)
    this.#time = time
  }

  /** Counts a request to a key that was used in this interval, if it fits even with the interval before counted in full. */
  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const base = slot * 3
    const units = (fields[base + 1] as number) + cost
    if (fields[base + 2] !== this.ordinal || !((fields[base] as number) + units <= this.limit) || ((flags[slot] as number) & 4) !== 0) {
      return super.take(slot, cost, now)
    }
    fields[base + 1] = units
    this.allowed += cost
    return fields[base] === 0 ? this.limit - units : super.remaining(slot, now)
  }

  override remaining(slot: number, now: number): number {
    const { fields } = this.site.table
    const base = slot * 3
    if (this.limit < 0 || fields[base + 2] !== this.ordinal || fields[base] !== 0) return super.remaining(slot, now)
    return Math.max(0, this.limit - (fields[base + 1] as number))
  }

  override roll(now: number): void {
    const { interval } = this.site.policy
    const before = this.ordinal
    const ordinal = runningAt(this.#time, before, this.rollAt, interval, now)
    // The ordinal never goes back: units stay in the interval in which they were counted.
    if (ordinal > before) {
      this.ordinal = ordinal
      this.site.movedTo(ordinal)
    }
    this.rollAt = nextRoll(this.#time, this.ordinal, interval, now, ordinal > before ? undefined : this.rollAt)
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    return this.#used(slot, now) + cost <= limit + slackOf(limit)
  }

  protected override count(slot: number, cost: number): void {
    this.#write(slot, this.#previous(slot), sumOf(this.#current(slot), cost))
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#used(slot, now) - this.site.limitOf(slot))
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const { interval } = this.site.policy
    const previous = this.#previous(slot)
    const current = this.#current(slot)
    const room = limit - cost + slackOf(limit) / 2
    const end = endOf(this.ordinal, interval)
    const after = wholeMilliseconds(this.#time.monotonicAt(end - aheadOf(previous, current, room) * interval) - now)
    return weighted(previous, current, (end - this.#time.at(now + after)) / interval) <= room ? after : after + 1
  }

  /** The previous interval's units are back when the running one ends, and those of the running one an interval later. */
  override resetAfterMs(slot: number, now: number): number {
    const till = this.rollAt - now
    if (this.#current(slot) > 0) return till + this.site.policy.interval
    return this.#previous(slot) > 0 ? till : 0
  }

  protected override idle(slot: number): boolean {
    return this.ordinal - (this.fields[slot * 3 + 2] as number) >= 2
  }

  protected override unused(slot: number): boolean {
    return this.#previous(slot) === 0 && this.#current(slot) === 0
  }

  protected override giveBack(slot: number, ordinal: Ordinal, units: number): void {
    const previous = this.#previous(slot)
    const current = this.#current(slot)
    // Units taken by a clock that was ahead count in the running interval.
    if (ordinal >= this.ordinal) this.#write(slot, previous, Math.max(0, current - units))
    else if (ordinal === this.ordinal - 1) this.#write(slot, Math.max(0, previous - units), current)
  }

  override refundNewest(slot: number, units: number, now: number): number {
    return super.refundNewest(slot, Math.min(units, this.#current(slot)), now)
  }

  #used(slot: number, now: number): number {
    const { interval } = this.site.policy
    const ahead = (endOf(this.ordinal, interval) - this.#time.at(now)) / interval
    return weighted(this.#previous(slot), this.#current(slot), Math.max(0, ahead))
  }

  #current(slot: number): number {
    return this.fields[slot * 3 + 2] === this.ordinal ? (this.fields[slot * 3 + 1] as number) : 0
  }

  #previous(slot: number): number {
    const last = this.fields[slot * 3 + 2] as number
    if (last === this.ordinal) return this.fields[slot * 3] as number
    return last === this.ordinal - 1 ? (this.fields[slot * 3 + 1] as number) : 0
  }

  #write(slot: number, previous: number, current: number): void {
    const { fields } = this
    fields[slot * 3] = previous
    fields[slot * 3 + 1] = current
    fields[slot * 3 + 2] = this.ordinal
  }
}
