import type { Ordinal } from '../../time/intervals.ts'
import { type FormerRate, FormerRates } from '../bucket/former-rates.ts'
import { Paces } from '../bucket/paces.ts'
import { ROUNDING } from '../bucket/step.ts'
import { drainTime } from '../drain-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import type { MeterExchange } from '../site.ts'
import { heat, rest, shapeOf, unitsOf, type WarmKey } from './warm-up-step.ts'

/**
 * Token buckets that warm up, of this process alone: `WARM_UP_STEP` for many keys. For each key:
 *
 *     fields[slot * 3]      units owed
 *     fields[slot * 3 + 1]  the time of the other two numbers
 *     fields[slot * 3 + 2]  how warm it was, from 0 to 1
 */
export class LocalWarmUp extends LocalMeter {
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected readonly warmUp: number
  protected readonly coldFactor: number
  protected interval: number
  protected rate: number
  /** Units that fit into a bucket. Negative while some key has a limit of its own. */
  protected capacity: number
  /** Permits that a key saves at most at the policy's limit, and those of them that take no longer than at full rate. */
  protected saved: number
  protected threshold: number
  /** By how much longer a unit takes for each permit beyond them, in units. */
  protected slope: number
  /** From this time on `site` needs a newer millisecond. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY
  /** The lowest limit above 0 of any request: at it a bucket drains slowest. */
  #lowest: number = Number.POSITIVE_INFINITY
  readonly #former: FormerRates
  readonly #paces: Paces

  /** @param warmUp milliseconds */
  constructor(site: MeterSite, { defer }: Pick<MeterExchange, 'defer'>, warmUp: number, coldFactor: number) {
    super(site)
    const { limit, interval } = site.policy
    this.#paces = new Paces(site)
    this.#former = new FormerRates(
      site.table,
      defer,
      (slot, last) => this.#bring(slot, last),
      () => this.recheck(-1),
    )
    this.warmUp = warmUp
    this.coldFactor = coldFactor
    this.interval = interval
    this.rate = limit
    this.capacity = site.most(limit)
    const { threshold, most, slope } = shapeOf(limit, interval, warmUp, coldFactor)
    this.threshold = threshold
    this.saved = most
    this.slope = slope
    this.recheck(-1)
  }

  override adopt(now: number): void {
    if (this.rate !== this.site.policy.limit) this.#former.changed(this.rate, now)
    this.recheck(-1)
    super.adopt(now)
  }

  #bring(slot: number, { rate, until }: FormerRate): void {
    const { table } = this.site
    // Another meter may have taken the table over.
    if (table.stride === 3 && (table.fields[slot * 3 + 1] as number) < until) this.#write(slot, this.#key(slot, rate, until), until)
  }

  override recheck(slot: number): void {
    const { limited, policy } = this.site
    const { limit, interval } = policy
    this.#paces.recheck()
    this.rate = limit
    // While keys drain at a former limit, only the slow path can decide.
    this.capacity = limited || this.#former.list.length > 0 ? -1 : this.site.most(limit)
    const { threshold, most, slope } = shapeOf(limit, interval, this.warmUp, this.coldFactor)
    this.threshold = threshold
    this.saved = most
    this.slope = slope
    for (const one of [limit, slot < 0 ? 0 : this.site.limitOf(slot)]) if (one > 0 && one < this.#lowest) this.#lowest = one
  }

  /** As `WARM_UP_STEP`. A number replaces an imported constant, as in `GatedMeter`. */
  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const { rate, interval, saved, capacity } = this
    const base = slot * 3
    let level = (fields[base] as number) - ((now - (fields[base + 1] as number)) * rate) / interval
    let warmth = fields[base + 2] as number
    if (level < 0) {
      warmth += (level * interval) / (rate * this.warmUp)
      if (warmth < 0) warmth = 0
      level = 0
    }
    if (!(cost <= capacity - level) || ((flags[slot] as number) & 4) !== 0) return -1
    const above = (1 - warmth) * saved - this.threshold
    const slow = Math.max(0, Math.min(cost, above))
    level += cost + (slow * this.slope * (2 * above - slow)) / 2
    fields[base] = level
    fields[base + 1] = now
    fields[base + 2] = Math.min(1, warmth + cost / saved)
    this.allowed += cost
    if (now >= this.toldUntil) this.tell(now)
    return Math.max(0, capacity - level)
  }

  override remaining(slot: number, now: number): number {
    return this.left(slot, this.site.limitOf(slot), now)
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    const capacity = this.site.most(limit)
    return cost <= capacity - this.#level(slot, this.#paces.of(slot), now) + capacity * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, _limit: number, now: number): void {
    const before = this.#level(slot, this.#paces.of(slot), now)
    this.#fill(slot, cost, now)
    this.#paces.asked(slot, before)
    if (now >= this.toldUntil) this.tell(now)
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#level(slot, this.#paces.of(slot), now) - this.site.most(this.site.limitOf(slot)))
  }

  /** The level contains the extra cost of the warm-up, which another meter would add again. So this returns the units before it. */
  handed(slot: number, now: number): number {
    const pace = this.#paces.of(slot)
    const level = this.#level(slot, pace, now)
    const { threshold, most, slope } = shapeOf(pace, this.interval, this.warmUp, this.coldFactor)
    return level === 0 || !(pace > 0 && pace < Number.POSITIVE_INFINITY) ? level : unitsOf(level, threshold, most, slope)
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, this.site.most(limit) - this.#level(slot, this.#paces.of(slot), now))
  }

  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const capacity = this.site.most(limit)
    const pace = this.#paces.of(slot)
    const room = capacity - this.#level(slot, pace, now)
    return limit > 0 ? drainTime(cost - room - (capacity * ROUNDING) / 2, pace, this.interval) : 0
  }

  override resetAfterMs(slot: number, now: number): number {
    const pace = this.#paces.of(slot)
    return drainTime(this.#level(slot, pace, now), pace, this.interval)
  }

  agree(slot: number, used: number, now: number): void {
    const limit = this.site.limitOf(slot)
    if (limit === Number.POSITIVE_INFINITY || limit === 0) return
    const { warmth } = this.#key(slot, this.#paces.of(slot), now)
    this.#write(slot, { level: Math.max(0, used), warmth }, now)
  }

  /** Whether the key is cold even at the lowest limit, because its next request may bring another one. */
  protected override idle(slot: number, now: number): boolean {
    const { level, warmth } = this.#key(slot, this.#lowest, now)
    return level === 0 && warmth === 0
  }

  protected override giveBack(slot: number, takenAt: Ordinal, units: number, limit: number, now: number): void {
    const pace = this.#paces.of(slot)
    const whole = this.site.most(limit === Number.POSITIVE_INFINITY ? pace : limit)
    if (now - takenAt >= drainTime(whole, pace, this.interval)) return
    this.#fill(slot, -units, now)
  }

  override forgotten(slot: number): void {
    this.#paces.forget(slot)
  }

  protected override cleared(slot: number): void {
    this.#paces.forget(slot)
  }

  /** Passes the current millisecond to the site: a refund needs the time of its decision. */
  protected tell(now: number): void {
    const millisecond = Math.floor(now)
    this.toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  /** Units owed. */
  #level(slot: number, pace: number, now: number): number {
    const { fields } = this
    return this.#former.level(fields[slot * 3] as number, fields[slot * 3 + 1] as number, pace, now, this.interval)
  }

  #key(slot: number, pace: number, now: number): WarmKey {
    const { fields, interval, warmUp } = this
    const key = { level: fields[slot * 3] as number, warmth: fields[slot * 3 + 2] as number }
    let at = fields[slot * 3 + 1] as number
    for (const { rate, until } of this.#former.list) {
      if (at >= until) continue
      rest(key, until - at, rate, interval, warmUp)
      at = until
    }
    rest(key, now - at, pace, interval, warmUp)
    return key
  }

  /** Takes units, or returns them if the number is negative. */
  #fill(slot: number, units: number, now: number): void {
    const { site, interval, warmUp, coldFactor } = this
    const pace = this.#paces.of(slot)
    const usual = site.usualOf(slot)
    const key = this.#key(slot, pace, now)
    heat(key, units, site.limitOf(slot), pace, Math.max(usual, site.most(usual)), interval, warmUp, coldFactor)
    this.#write(slot, key, now)
  }

  #write(slot: number, { level, warmth }: WarmKey, now: number): void {
    this.fields[slot * 3] = level
    this.fields[slot * 3 + 1] = now
    this.fields[slot * 3 + 2] = warmth
  }
}
