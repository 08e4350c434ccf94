import { sumOf } from '../../keys/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'

/**
 * Windows of this process alone that begin with a key's first request: `FIRST_REQUEST_STEP` of many keys. Of each key:
 *
 *     fields[slot * 2]      units taken in its last window
 *     fields[slot * 2 + 1]  when that began
 */
export class LocalFirstRequestWindow extends LocalMeter {
  readonly #interval: number
  #toldUntil = Number.NEGATIVE_INFINITY

  constructor(site: MeterSite) {
    super(site)
    this.#interval = site.policy.interval
  }

  protected override allows(slot: number, cost: number, limit: number, now: number): boolean {
    return cost <= limit - this.#used(slot, now) && limit > 0
  }

  protected override count(slot: number, cost: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used === 0) this.fields[slot * 2 + 1] = now
    this.fields[slot * 2] = sumOf(used, cost)
    if (now < this.#toldUntil) return
    // Has decisions know in which millisecond they were made: a refund must.
    const millisecond = Math.floor(now)
    this.#toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  protected override wait(slot: number, _cost: number, _limit: number, now: number): number {
    return this.#used(slot, now) > 0 ? this.#interval - (now - (this.fields[slot * 2 + 1] as number)) : this.#interval
  }

  override resetAfter(slot: number, now: number): number {
    return this.#used(slot, now) > 0 ? this.wait(slot, 0, 0, now) : 0
  }

  protected override idle(slot: number, now: number): boolean {
    return this.#used(slot, now) === 0
  }

  /** @param takenAt the millisecond that they were taken in */
  protected override giveBack(slot: number, takenAt: Ordinal, units: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used > 0 && takenAt >= Math.floor(this.fields[slot * 2 + 1] as number)) this.fields[slot * 2] = Math.max(0, used - units)
  }

  #used(slot: number, now: number): number {
    return now - (this.fields[slot * 2 + 1] as number) < this.#interval ? (this.fields[slot * 2] as number) : 0
  }
}
