import { sumOf } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'

/** Milliseconds by which a difference of times may be wrong. */
const ROUNDED = 1e-6

/**
 * Windows of this process alone that begin with a key's first request: `FIRST_REQUEST_STEP` for many keys. For each key:
 *
 *     fields[slot * 2]      units taken in its last window
 *     fields[slot * 2 + 1]  when that window began
 */
export class LocalFirstRequestWindow extends LocalMeter {
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected interval: number
  /** From this time on `site` needs a newer millisecond. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY

  constructor(site: MeterSite) {
    super(site)
    // A request that returns after `retryAfterMs` must fit, though differences of times are rounded.
    this.interval = site.policy.interval - 2 * ROUNDED
  }

  /** A request within an open window. Numbers replace imported constants, as in `GatedMeter`. */
  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const base = slot * 2
    const { limit } = this
    const used = fields[base] as number
    if (used === 0 || now - (fields[base + 1] as number) >= this.interval || !(cost <= limit - used)) return -1
    if (((flags[slot] as number) & 4) !== 0) return -1
    fields[base] = used + cost
    this.allowed += cost
    if (now >= this.toldUntil) this.tell(now)
    return Math.max(0, limit - (used + cost))
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    return cost <= limit - this.#used(slot, now) && limit > 0
  }

  protected override count(slot: number, cost: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used === 0) this.fields[slot * 2 + 1] = now
    this.fields[slot * 2] = sumOf(used, cost)
    if (now >= this.toldUntil) this.tell(now)
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#used(slot, now) - this.site.limitOf(slot))
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  protected override wait(slot: number, _cost: number, _limit: number, now: number): number {
    return this.#used(slot, now) > 0 ? this.interval + ROUNDED - (now - (this.fields[slot * 2 + 1] as number)) : this.interval
  }

  override resetAfterMs(slot: number, now: number): number {
    return this.#used(slot, now) > 0 ? this.wait(slot, 0, 0, now) : 0
  }

  protected override idle(slot: number, now: number): boolean {
    return this.#used(slot, now) === 0
  }

  /** @param takenAt the millisecond in which they were taken */
  protected override giveBack(slot: number, takenAt: Ordinal, units: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used > 0 && takenAt >= Math.floor(this.fields[slot * 2 + 1] as number)) this.fields[slot * 2] = Math.max(0, used - units)
  }

  /** Passes the current millisecond to the site: a refund needs the time of its decision. */
  protected tell(now: number): void {
    const millisecond = Math.floor(now)
    this.toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  #used(slot: number, now: number): number {
    return now - (this.fields[slot * 2 + 1] as number) < this.interval ? (this.fields[slot * 2] as number) : 0
  }
}
