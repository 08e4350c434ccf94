import { sumOf } from '../../keys/units.ts'
import { type Ordinal, ordinalAt } from '../../time/intervals.ts'
import type { StoreTime } from '../../time/store-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { nextRoll } from '../roll.ts'

/** Idle intervals after which a key is forgotten, as where counts are exchanged. */
const IDLE_INTERVALS = 2

/**
 * Fixed windows of this process alone. Of each key:
 *
 *     fields[slot * 2]      units taken in the interval
 *     fields[slot * 2 + 1]  … with this ordinal; what it says of another one is over
 */
export class LocalFixedWindow extends LocalMeter {
  readonly #time: StoreTime
  #ordinal = 0 as Ordinal

  /** @param time the clock whose epoch the intervals are of */
  constructor(site: MeterSite, time: StoreTime) {
    super(site)
    this.#time = time
  }

  override roll(now: number): void {
    const { interval } = this.site.policy
    const ordinal = ordinalAt(this.#time.at(now), interval)
    // A node's ordinal never goes back: what is counted stays in the interval that it was counted in.
    if (ordinal > this.#ordinal) {
      this.#ordinal = ordinal
      this.site.movedTo(ordinal)
    }
    this.rollAt = nextRoll(this.#time, this.#ordinal, interval, now)
  }

  protected override countIfAllowed(slot: number, cost: number, limit: number): boolean {
    const { fields } = this
    const base = slot * 2
    const used = (fields[base + 1] === this.#ordinal ? (fields[base] as number) : 0) + cost
    if (used > limit) return false
    fields[base] = used
    fields[base + 1] = this.#ordinal
    return true
  }

  protected override allows(slot: number, cost: number, limit: number): boolean {
    return this.mark(slot) + cost <= limit
  }

  protected override count(slot: number, cost: number): void {
    this.restore(slot, sumOf(this.mark(slot), cost))
  }

  override mark(slot: number): number {
    return this.fields[slot * 2 + 1] === this.#ordinal ? (this.fields[slot * 2] as number) : 0
  }

  protected override restore(slot: number, mark: number): void {
    this.fields[slot * 2] = mark
    this.fields[slot * 2 + 1] = this.#ordinal
  }

  protected override left(slot: number, limit: number): number {
    return Math.max(0, limit - this.mark(slot))
  }

  override resetAfter(_slot: number, now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  protected override wait(_slot: number, _cost: number, _limit: number, now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  protected override idle(slot: number): boolean {
    return this.#ordinal - (this.fields[slot * 2 + 1] as number) >= IDLE_INTERVALS
  }

  protected override giveBack(slot: number, ordinal: Ordinal, units: number): void {
    if (Math.min(ordinal, this.#ordinal) === this.#ordinal) this.restore(slot, Math.max(0, this.mark(slot) - units))
  }
}
