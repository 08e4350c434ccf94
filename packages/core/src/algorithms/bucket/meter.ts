import { sumOf } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { drainTime } from '../drain-time.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import type { MeterExchange } from '../site.ts'
import { type FormerRate, FormerRates } from './former-rates.ts'
import { Paces } from './paces.ts'
import { ROUNDING } from './step.ts'

/**
 * Buckets of this process alone: `BUCKET_STEP` for many keys. For each key:
 *
 *     fields[slot * 2]      units in its bucket
 *     fields[slot * 2 + 1]  when they were
 */
export class LocalBucket extends LocalMeter {
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected interval: number
  protected rate: number
  /** Units that fit into a bucket. Negative while some key has a limit of its own. */
  protected capacity: number
  /** From this time on `site` needs a newer millisecond. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY
  /** The lowest limit above 0 of any request: at it a bucket drains slowest. */
  #lowest: number
  readonly #former: FormerRates
  readonly #paces: Paces

  constructor(site: MeterSite, { defer }: Pick<MeterExchange, 'defer'>) {
    super(site)
    this.#paces = new Paces(site)
    this.#former = new FormerRates(
      site.table,
      defer,
      (slot, last) => this.#runOut(slot, last),
      () => this.recheck(-1),
    )
    this.interval = site.policy.interval
    this.rate = site.policy.limit
    this.capacity = this.site.most(this.rate)
    this.#lowest = this.rate > 0 ? this.rate : Number.POSITIVE_INFINITY
  }

  override adopt(now: number): void {
    if (this.rate !== this.site.policy.limit) this.#former.changed(this.rate, now)
    this.recheck(-1)
    super.adopt(now)
  }

  /** Moves a key to the current limit: until the change its bucket drained at the limit of before. */
  #runOut(slot: number, { rate, until }: FormerRate): void {
    const { table } = this.site
    // Another meter may have taken the table over.
    if (table.stride !== 2 || !((table.fields[slot * 2 + 1] as number) < until)) return
    if ((table.fields[slot * 2] as number) > 0) this.#write(slot, this.#level(slot, rate, until), until)
  }

  override recheck(slot: number): void {
    const { limited, policy } = this.site
    this.#paces.recheck()
    this.rate = policy.limit
    // While keys drain at a former limit, only the slow path can decide.
    this.capacity = limited || this.#former.list.length > 0 ? -1 : this.site.most(policy.limit)
    for (const limit of [policy.limit, slot < 0 ? 0 : this.site.limitOf(slot)]) if (limit > 0 && limit < this.#lowest) this.#lowest = limit
  }

  // The request path, short enough to be inlined. A number replaces an imported constant, as in `GatedMeter`.

  override take(slot: number, cost: number, now: number): number {
    const { fields, flags } = this.site.table
    const { capacity } = this
    const base = slot * 2
    let level = (fields[base] as number) - ((now - (fields[base + 1] as number)) * this.rate) / this.interval
    if (level < 0) level = 0
    level += cost
    if (!(level <= capacity) || ((flags[slot] as number) & 4) !== 0) return -1
    fields[base] = level
    fields[base + 1] = now
    this.allowed += cost
    if (now >= this.toldUntil) this.tell(now)
    return capacity - level
  }

  override remaining(slot: number, now: number): number {
    if (this.capacity < 0) return this.left(slot, this.site.limitOf(slot), now)
    const { fields } = this.site.table
    const base = slot * 2
    const level = (fields[base] as number) - ((now - (fields[base + 1] as number)) * this.rate) / this.interval
    return level <= 0 ? this.capacity : level < this.capacity ? this.capacity - level : 0
  }

  override resetAfterMs(slot: number, now: number): number {
    const { fields } = this.site.table
    const base = slot * 2
    // Mostly `take` was called in this moment. With a limit of 0 the capacity is 0.
    if (this.capacity <= 0 || fields[base + 1] !== now) return this.#emptyAfter(slot, now)
    return ((fields[base] as number) * this.interval) / this.rate
  }

  /** As `resetAfterMs`, for any key at any time. */
  #emptyAfter(slot: number, now: number): number {
    const pace = this.#paces.of(slot)
    return drainTime(this.#level(slot, pace, now), pace, this.interval)
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    const capacity = this.site.most(limit)
    return cost <= capacity - this.#level(slot, this.#paces.of(slot), now) + capacity * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, _limit: number, now: number): void {
    const level = this.#level(slot, this.#paces.of(slot), now)
    this.#write(slot, sumOf(level, this.#paces.filling(slot, cost, level)), now)
    this.#paces.asked(slot, level)
    if (now >= this.toldUntil) this.tell(now)
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#level(slot, this.#paces.of(slot), now) - this.site.most(this.site.limitOf(slot)))
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

  /** Whether the bucket is empty even at the lowest limit, because the key's next request may bring another one. */
  protected override idle(slot: number, now: number): boolean {
    return this.#level(slot, this.#lowest, now) === 0
  }

  /** @param takenAt the millisecond in which they were taken. They have drained after the time in which a full bucket drains */
  protected override giveBack(slot: number, takenAt: Ordinal, units: number, limit: number, now: number): void {
    const pace = this.#paces.of(slot)
    const whole = this.site.most(limit === Number.POSITIVE_INFINITY ? pace : limit)
    if (now - takenAt >= drainTime(whole, pace, this.interval)) return
    this.#write(slot, Math.max(0, this.#level(slot, pace, now) - units), now)
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

  #level(slot: number, pace: number, now: number): number {
    const { fields } = this
    return this.#former.level(fields[slot * 2] as number, fields[slot * 2 + 1] as number, pace, now, this.interval)
  }

  #write(slot: number, level: number, now: number): void {
    this.fields[slot * 2] = level
    this.fields[slot * 2 + 1] = now
  }
}
