import { BLOCKED, type KeyTable } from '../../keys/key-table.ts'
import type { SourceIndex } from '../../report/stats.ts'
import { sumOf } from '../../store/units.ts'
import { epochTimeOf } from '../../time/calendar.ts'
import { type EpochTime, type Ordinal, startOf } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { nextRoll, runningAt } from '../roll.ts'

/** Idle intervals after which a key is removed, as with synced counts. */
const IDLE_INTERVALS = 2

/** Added to the ordinal of a blocked key's record, which then never equals the running interval's. */
const HELD = 0.5

/**
 * Fixed windows of this process alone. For each key:
 *
 *     fields[slot * 2]      units taken in an interval
 *     fields[slot * 2 + 1]  the interval's ordinal, plus HELD if the key may be blocked
 *
 * So one comparison shows that a key's units are of the running interval and that only the limit matters.
 */
export class LocalFixedWindow extends LocalMeter {
  readonly #time: EpochTime
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected readonly table: KeyTable
  protected ordinal = 0 as Ordinal
  protected cools = false
  /** The limit, if a key that reached it is only rejected, without a cooldown or dry run. NaN otherwise. */
  protected closed: number = Number.NaN

  /** @param time the clock that the intervals follow */
  constructor(site: MeterSite, time: EpochTime) {
    super(site)
    this.#time = epochTimeOf(site.policy, time)
    this.table = site.table
    this.adoptLimit()
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

  protected override get begunAt(): number {
    return this.#time.monotonicAt(startOf(this.ordinal, this.site.policy.interval))
  }

  // The request path, short enough to be inlined. Numbers replace imported constants, as in `GatedMeter`.

  override take(slot: number, cost: number): number {
    const { fields } = this.table
    const { limit } = this
    const base = slot * 2
    const before = fields[base] as number
    const used = before + cost
    if (fields[base + 1] !== this.ordinal) return -1
    if (used > limit) return before === this.closed && cost <= limit ? -2 : -1
    fields[base] = used
    this.allowed += cost
    return limit - used
  }

  override fits(slot: number, cost: number): boolean {
    const { fields } = this.table
    const base = slot * 2
    return (fields[base] as number) + cost <= this.limit && fields[base + 1] === this.ordinal
  }

  /** A key without capacity is rejected until the interval ends, unless that starts a cooldown. */
  override fullBy(slot: number, cost: number): SourceIndex | -1 {
    const { fields } = this.table
    const base = slot * 2
    const { limit } = this
    if (cost > limit || this.cools || fields[base + 1] !== this.ordinal) return -1
    return (fields[base] as number) + cost > limit ? this.sourceOf(slot, cost) : -1
  }

  override remaining(slot: number): number {
    const { fields } = this.table
    const base = slot * 2
    const left = this.limit - (fields[base] as number)
    return left >= 0 && fields[base + 1] === this.ordinal ? left : this.leftOf(slot)
  }

  override resetAfterMs(_slot: number, now: number): number {
    return this.rollAt - now
  }

  override mark(slot: number): number {
    return this.table.fields[slot * 2] as number
  }

  override untake(slot: number, mark: number, cost: number): void {
    this.table.fields[slot * 2] = mark
    this.allowed -= cost
  }

  override recheck(slot: number): void {
    super.recheck(slot)
    const at = slot * 2 + 1
    this.table.fields[at] = this.#tag(slot, Math.floor(this.table.fields[at] as number))
  }

  protected override adoptLimit(): void {
    super.adoptLimit()
    const { cooldown, dryRun } = this.site.policy
    this.cools = cooldown > 0
    this.closed = this.cools || dryRun ? Number.NaN : this.limit
  }

  protected override hasCapacity(slot: number, cost: number, limit: number): boolean {
    return this.#used(slot) + cost <= limit
  }

  protected override count(slot: number, cost: number): void {
    this.#write(slot, sumOf(this.#used(slot), cost))
  }

  over(slot: number): number {
    return Math.max(0, this.#used(slot) - this.site.limitOf(slot))
  }

  protected override left(slot: number, limit: number): number {
    return Math.max(0, limit - this.#used(slot))
  }

  protected override wait(_slot: number, _cost: number, _limit: number, now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  protected override idle(slot: number): boolean {
    return this.ordinal - Math.floor(this.table.fields[slot * 2 + 1] as number) >= IDLE_INTERVALS
  }

  protected override unused(slot: number): boolean {
    return this.#used(slot) === 0
  }

  protected override giveBack(slot: number, ordinal: Ordinal, units: number): void {
    if (Math.min(ordinal, this.ordinal) === this.ordinal) this.#write(slot, Math.max(0, this.#used(slot) - units))
  }

  /** Units left of any key. */
  protected leftOf(slot: number): number {
    return this.left(slot, this.site.limitOf(slot))
  }

  /** Units taken in the running interval. */
  #used(slot: number): number {
    const { fields } = this.table
    return (fields[slot * 2 + 1] as number) >= this.ordinal ? (fields[slot * 2] as number) : 0
  }

  #write(slot: number, units: number): void {
    this.table.fields[slot * 2] = units
    this.table.fields[slot * 2 + 1] = this.#tag(slot, this.ordinal)
  }

  #tag(slot: number, ordinal: number): number {
    return ((this.table.flags[slot] as number) & BLOCKED) === 0 ? ordinal : ordinal + HELD
  }
}
