import type { Ordinal } from '../../time/intervals.ts'
import { drainTime, ROUNDING } from '../bucket/step.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { mostSaved, slopeOf, thresholdOf, unitsOf, warmed, warmUpTime } from './warm-up-step.ts'

/**
 * Token buckets that warm up, of this process alone: `WARM_UP_STEP` of many keys. Of each key:
 *
 *     fields[slot * 3]      milliseconds that are owed
 *     fields[slot * 3 + 1]  when they were
 *     fields[slot * 3 + 2]  how warm it was, from 0 to 1
 */
export class LocalWarmUp extends LocalMeter {
  // Not `#`: of a private name more bytecode is made, and these are read on the request path.
  protected readonly warmUp: number
  protected readonly coldFactor: number
  protected interval: number
  protected rate: number
  /** What a bucket holds; less than 0 while some key has a limit of its own. */
  protected capacity: number
  /** Permits that a key saves at most at the policy's limit, and those of them that take as long as ever. */
  protected saved: number
  protected threshold: number
  /** By how much longer a unit takes for each permit beyond them, in units. */
  protected slope: number
  /** Until when `site` need not be told the time. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY

  /** @param warmUp milliseconds */
  constructor(site: MeterSite, warmUp: number, coldFactor: number) {
    super(site)
    const { limit, interval } = site.policy
    this.warmUp = warmUp
    this.coldFactor = coldFactor
    this.interval = interval
    this.rate = limit
    this.capacity = site.most(limit)
    this.threshold = thresholdOf(limit, interval, warmUp)
    this.saved = mostSaved(this.threshold, coldFactor)
    this.slope = slopeOf(this.threshold, coldFactor)
  }

  override adopt(now: number): void {
    this.recheck()
    super.adopt(now)
  }

  override recheck(): void {
    const { limited, policy } = this.site
    const { limit, interval } = policy
    this.rate = limit
    this.capacity = limited ? -1 : this.site.most(limit)
    this.threshold = thresholdOf(limit, interval, this.warmUp)
    this.saved = mostSaved(this.threshold, this.coldFactor)
    this.slope = slopeOf(this.threshold, this.coldFactor)
  }

  /** As `WARM_UP_STEP`; a number stands for an imported constant, as in `GatedMeter`. */
  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const { rate, interval, saved, capacity } = this
    const base = slot * 3
    let owed = (fields[base] as number) - (now - (fields[base + 1] as number))
    let warmth = fields[base + 2] as number
    if (owed < 0) {
      warmth += owed / this.warmUp
      if (warmth < 0) warmth = 0
      owed = 0
    }
    if (!(cost <= capacity - (owed * rate) / interval) || ((flags[slot] as number) & 4) !== 0) return -1
    const above = (1 - warmth) * saved - this.threshold
    const slow = Math.max(0, Math.min(cost, above))
    owed += ((cost + (slow * this.slope * (2 * above - slow)) / 2) * interval) / rate
    fields[base] = owed
    fields[base + 1] = now
    fields[base + 2] = Math.min(1, warmth + cost / saved)
    this.admitted += cost
    if (now >= this.toldUntil) this.tell(now)
    return Math.max(0, capacity - (owed * rate) / interval)
  }

  override remaining(slot: number, now: number): number {
    if (this.capacity < 0) return this.left(slot, this.site.limitOf(slot), now)
    const { fields } = this.site.table
    const base = slot * 3
    const owed = (fields[base] as number) - (now - (fields[base + 1] as number))
    const left = owed > 0 ? this.capacity - (owed * this.rate) / this.interval : this.capacity
    return Math.max(0, left)
  }

  protected override allows(slot: number, cost: number, limit: number, now: number): boolean {
    const capacity = this.site.most(limit)
    return cost <= capacity - this.#level(slot, limit, now) + capacity * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, limit: number, now: number): void {
    this.#fill(slot, cost, limit, now)
    if (now >= this.toldUntil) this.tell(now)
  }

  over(slot: number, now: number): number {
    const limit = this.site.limitOf(slot)
    return Math.max(0, this.#level(slot, limit, now) - this.site.most(limit))
  }

  /** What fills the bucket is longer than its units by the warm-up, which they would cost once more. */
  handed(slot: number, now: number): number {
    const limit = this.site.limitOf(slot)
    const threshold = thresholdOf(limit, this.interval, this.warmUp)
    const level = this.#level(slot, limit, now)
    return level === 0 ? 0 : unitsOf(level, threshold, mostSaved(threshold, this.coldFactor), slopeOf(threshold, this.coldFactor))
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, this.site.most(limit) - this.#level(slot, limit, now))
  }

  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const capacity = this.site.most(limit)
    const room = capacity - this.#level(slot, limit, now)
    return drainTime(cost - room - (capacity * ROUNDING) / 2, limit, this.interval)
  }

  override resetAfter(slot: number, now: number): number {
    const { fields } = this.site.table
    const owed = (fields[slot * 3] as number) - (now - (fields[slot * 3 + 1] as number))
    return Math.max(0, owed)
  }

  agree(slot: number, used: number, now: number): void {
    const limit = this.site.limitOf(slot)
    if (limit === Number.POSITIVE_INFINITY || limit === 0) return
    this.fields[slot * 3 + 2] = this.#warmth(slot, now)
    this.fields[slot * 3] = Math.max(0, used * this.interval) / limit
    this.fields[slot * 3 + 1] = now
  }

  /** When it is cold again. */
  protected override idle(slot: number, now: number): boolean {
    return this.#owed(slot, now) === 0 && this.#warmth(slot, now) === 0
  }

  protected override giveBack(slot: number, takenAt: Ordinal, units: number, limit: number, now: number): void {
    if (now - takenAt >= drainTime(this.site.most(limit), limit, this.interval)) return
    this.#fill(slot, -units, limit, now)
  }

  /** Has decisions know in which millisecond they were made: a refund must. */
  protected tell(now: number): void {
    const millisecond = Math.floor(now)
    this.toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  #owed(slot: number, now: number): number {
    return Math.max(0, (this.fields[slot * 3] as number) - Math.max(0, now - (this.fields[slot * 3 + 1] as number)))
  }

  #warmth(slot: number, now: number): number {
    const rested = now - (this.fields[slot * 3 + 1] as number) - (this.fields[slot * 3] as number)
    return Math.max(0, (this.fields[slot * 3 + 2] as number) - Math.max(0, rested) / this.warmUp)
  }

  /** What is owed, in units. */
  #level(slot: number, limit: number, now: number): number {
    return limit === Number.POSITIVE_INFINITY ? 0 : (this.#owed(slot, now) * limit) / this.interval
  }

  /** Takes units, or brings them back where there are less than 0. */
  #fill(slot: number, units: number, limit: number, now: number): void {
    if (limit === Number.POSITIVE_INFINITY || limit === 0) return
    const { interval, coldFactor } = this
    const threshold = thresholdOf(limit, interval, this.warmUp)
    const most = mostSaved(threshold, coldFactor)
    const warmth = this.#warmth(slot, now)
    const time = warmUpTime(warmth, units, threshold, most, slopeOf(threshold, coldFactor))
    this.fields[slot * 3] = Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, this.#owed(slot, now) + (time * interval) / limit))
    this.fields[slot * 3 + 1] = now
    this.fields[slot * 3 + 2] = warmed(warmth, units, most)
  }
}
