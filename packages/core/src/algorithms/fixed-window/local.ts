import { sumOf } from '../../keys/units.ts'
import type { SourceIndex } from '../../report/stats.ts'
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
  // Not `#`: of a private name more bytecode is made, and these are read on the request path.
  protected ordinal = 0 as Ordinal
  /** The limit; less than 0 while some key has one of its own. */
  protected most: number
  protected cools: boolean

  /** @param time the clock whose epoch the intervals are of */
  constructor(site: MeterSite, time: StoreTime) {
    super(site)
    this.#time = time
    this.most = site.policy.limit
    this.cools = site.policy.cooldown > 0
  }

  override roll(now: number): void {
    const { interval } = this.site.policy
    const ordinal = ordinalAt(this.#time.at(now), interval)
    // A node's ordinal never goes back: what is counted stays in the interval that it was counted in.
    if (ordinal > this.ordinal) {
      this.ordinal = ordinal
      this.site.movedTo(ordinal)
    }
    this.rollAt = nextRoll(this.#time, this.ordinal, interval, now)
  }

  // The request path, short enough to be compiled into its caller; numbers stand for imported constants, as in `GatedMeter`.

  override take(slot: number, cost: number): boolean {
    const { fields, flags } = this.site.table
    const base = slot * 2
    const used = (fields[base] as number) + cost
    if (!(used <= this.most && fields[base + 1] === this.ordinal) || ((flags[slot] as number) & 4) !== 0) return false
    fields[base] = used
    this.admitted += cost
    return true
  }

  override remaining(slot: number): number {
    const { fields } = this.site.table
    const base = slot * 2
    const limit = this.most < 0 ? this.site.limitOf(slot) : this.most
    return fields[base + 1] === this.ordinal ? Math.max(0, limit - (fields[base] as number)) : limit
  }

  /** A key without room is refused until the interval ends, where that starts no cooldown. */
  override fullBy(slot: number, cost: number): SourceIndex | -1 {
    const { fields, flags } = this.site.table
    const base = slot * 2
    const { most } = this
    if (cost > most || this.cools || fields[base + 1] !== this.ordinal || ((flags[slot] as number) & 4) !== 0) return -1
    return (fields[base] as number) + cost > most ? this.sourceOf(slot, cost) : -1
  }

  override adopt(now: number): void {
    this.recheck()
    super.adopt(now)
  }

  override recheck(): void {
    const { limited, policy } = this.site
    this.most = limited ? -1 : policy.limit
    this.cools = policy.cooldown > 0
  }

  protected override allows(slot: number, cost: number, limit: number): boolean {
    return this.mark(slot) + cost <= limit
  }

  protected override count(slot: number, cost: number): void {
    this.restore(slot, sumOf(this.mark(slot), cost))
  }

  override mark(slot: number): number {
    return this.fields[slot * 2 + 1] === this.ordinal ? (this.fields[slot * 2] as number) : 0
  }

  protected override restore(slot: number, mark: number): void {
    this.fields[slot * 2] = mark
    this.fields[slot * 2 + 1] = this.ordinal
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
    return this.ordinal - (this.fields[slot * 2 + 1] as number) >= IDLE_INTERVALS
  }

  protected override giveBack(slot: number, ordinal: Ordinal, units: number): void {
    if (Math.min(ordinal, this.ordinal) === this.ordinal) this.restore(slot, Math.max(0, this.mark(slot) - units))
  }
}
