import type { Ordinal } from '../../time/intervals.ts'
import { drainTime, ROUNDING } from '../bucket/step.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { warmed, warmUpTime } from './warm-up-step.ts'

/**
 * Token buckets that warm up, of this process alone: `WARM_UP_STEP` of many keys. Of each key:
 *
 *     fields[slot * 3]      milliseconds that are owed
 *     fields[slot * 3 + 1]  when they were
 *     fields[slot * 3 + 2]  how warm it was, from 0 to 1
 */
export class LocalWarmUp extends LocalMeter {
  readonly #warmUp: number
  readonly #coldFactor: number
  #toldUntil = Number.NEGATIVE_INFINITY

  /** @param warmUp milliseconds */
  constructor(site: MeterSite, warmUp: number, coldFactor: number) {
    super(site)
    this.#warmUp = warmUp
    this.#coldFactor = coldFactor
  }

  protected override allows(slot: number, cost: number, limit: number, now: number): boolean {
    const capacity = this.site.most(limit)
    return cost <= capacity - this.#level(slot, limit, now) + capacity * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, limit: number, now: number): void {
    this.#fill(slot, cost, limit, now)
    if (now < this.#toldUntil) return
    // Has decisions know in which millisecond they were made: a refund must.
    const millisecond = Math.floor(now)
    this.#toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, this.site.most(limit) - this.#level(slot, limit, now))
  }

  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const capacity = this.site.most(limit)
    const room = capacity - this.#level(slot, limit, now)
    return drainTime(cost - room - (capacity * ROUNDING) / 2, limit, this.site.policy.interval)
  }

  override resetAfter(slot: number, now: number): number {
    return this.#owed(slot, now)
  }

  /** When it is cold again. */
  protected override idle(slot: number, now: number): boolean {
    return this.#owed(slot, now) === 0 && this.#warmth(slot, now) === 0
  }

  protected override giveBack(slot: number, takenAt: Ordinal, units: number, limit: number, now: number): void {
    if (now - takenAt >= drainTime(this.site.most(limit), limit, this.site.policy.interval)) return
    this.#fill(slot, -units, limit, now)
  }

  #owed(slot: number, now: number): number {
    return Math.max(0, (this.fields[slot * 3] as number) - Math.max(0, now - (this.fields[slot * 3 + 1] as number)))
  }

  #warmth(slot: number, now: number): number {
    const rested = now - (this.fields[slot * 3 + 1] as number) - (this.fields[slot * 3] as number)
    return Math.max(0, (this.fields[slot * 3 + 2] as number) - Math.max(0, rested) / this.#warmUp)
  }

  /** What is owed, in units. */
  #level(slot: number, limit: number, now: number): number {
    return limit === Number.POSITIVE_INFINITY ? 0 : (this.#owed(slot, now) * limit) / this.site.policy.interval
  }

  /** Takes units, or brings them back where there are less than 0. */
  #fill(slot: number, units: number, limit: number, now: number): void {
    if (limit === Number.POSITIVE_INFINITY || limit === 0) return
    const stable = this.site.policy.interval / limit
    const warmth = this.#warmth(slot, now)
    const owed = this.#owed(slot, now) + warmUpTime(warmth, units, stable, this.#warmUp, this.#coldFactor)
    this.fields[slot * 3] = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, owed))
    this.fields[slot * 3 + 1] = now
    this.fields[slot * 3 + 2] = warmed(warmth, units, stable, this.#warmUp, this.#coldFactor)
  }
}
