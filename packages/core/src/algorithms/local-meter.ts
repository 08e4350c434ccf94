import { BLOCKED } from '../keys/key-table.ts'
import { LOCAL, OVERFLOWED, type SourceIndex } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type Meter, type MeterSite, type Rejection, UNDECIDED } from './meter.ts'
import { RoomSearch } from './room-search.ts'

/** Slots that one step of a sweep visits, so that a step takes about a millisecond. */
export const SWEEP_STEP = 20_000

/**
 * Counts the keys of one policy in this process: the base of an algorithm of your own. It handles blocks, cooldowns, rejections and idle
 * keys. An algorithm adds how it counts, in four methods.
 *
 * A key's numbers are `this.fields[slot * n]` to `this.fields[slot * n + n - 1]`, with n the algorithm's `fields`. For a new key they are
 * 0. `cost` and `limit` are units. `now` and all other times are milliseconds of a clock that never goes back and is unrelated to the time
 * of day.
 *
 * @example
 * // At least a second between two requests. One number per key: when the next one may come.
 * class Spaced extends LocalMeter {
 *   protected hasCapacity(slot, cost, limit, now) { return now >= this.fields[slot] }
 *   protected count(slot, cost, limit, now) { this.fields[slot] = now + 1000 }
 *   protected left(slot, limit, now) { return now >= this.fields[slot] ? limit : 0 }
 *   protected wait(slot, cost, limit, now) { return this.fields[slot] - now }
 * }
 */
export abstract class LocalMeter implements Meter {
  readonly site: MeterSite
  readonly surveyed: number = 50_000
  rollAt: number = Number.NEGATIVE_INFINITY
  allowed = 0
  /** The policy's limit. Negative while some key has its own. For a request path that reads no other limit. */
  protected limit: number
  readonly #search = new RoomSearch()
  #marked: number[] = []

  constructor(site: MeterSite) {
    this.site = site
    this.limit = site.policy.limit
  }

  /** The numbers of all keys. A table that grows replaces them, so read them again in each call. */
  protected get fields(): Float64Array {
    return this.site.table.fields
  }

  /** Whether a request of `cost` fits. Also called for requests that are only previewed, so no later answer may depend on it. */
  protected abstract hasCapacity(slot: number, cost: number, limit: number, now: number): boolean
  /** Counts `cost` units, whether or not they fit: for an allowed request, or a charge. */
  protected abstract count(slot: number, cost: number, limit: number, now: number): void
  /** Remaining units. At least 0, and `site.most(limit)` for an unused key. */
  protected abstract left(slot: number, limit: number, now: number): number
  /** Milliseconds after which a rejected request fits if no other comes before it. `cost` is at most `site.most(limit)`. */
  protected abstract wait(slot: number, cost: number, limit: number, now: number): number

  /** `hasCapacity`, then `count` if it fits: an algorithm may do both in one step for speed. */
  protected countIfAllowed(slot: number, cost: number, limit: number, now: number): boolean {
    if (!this.hasCapacity(slot, cost, limit, now)) return false
    this.count(slot, cost, limit, now)
    return true
  }

  /**
   * Whether the key may be removed, because its numbers mean the same as a new key's. `now` may be some time ago. Default: when all its
   * units are left.
   */
  protected idle(slot: number, now: number): boolean {
    const limit = this.site.limitOf(slot)
    return this.left(slot, limit, now) >= this.site.most(limit)
  }

  /** Whether a full table may remove the key: its numbers count nothing, although it was in use lately. Default: `idle`. */
  protected unused(slot: number, now: number): boolean {
    return this.idle(slot, now)
  }

  /**
   * Returns units of an allowed request. Default: nothing comes back.
   *
   * @param ordinal the interval in which they were taken, if the meter reports intervals to its site (`movedTo`). `Infinity` means the
   * running interval
   */
  protected giveBack(_slot: number, _ordinal: Ordinal, _units: number, _limit: number, _now: number): void {}

  /** Milliseconds until all units are back. Default: `wait` for all of them. */
  resetAfterMs(slot: number, now: number): number {
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    return this.left(slot, limit, now) >= most ? 0 : this.wait(slot, most, limit, now)
  }

  /** Stores the key's numbers for `restore`, at the same moment. Default: all of them. A meter that needs only one may return it. */
  mark(slot: number): number {
    const { fields, stride } = this.site.table
    for (let at = 0; at < stride; at++) this.#marked[at] = fields[slot * stride + at] as number
    return 0
  }

  /** Restores the numbers that `mark` stored. */
  protected restore(slot: number, _mark: number): void {
    const { fields, stride } = this.site.table
    for (let at = 0; at < stride; at++) fields[slot * stride + at] = this.#marked[at] as number
  }

  /** Moves on, and sets the time of the next search for idle keys. */
  roll(now: number): void {
    this.rollAt = now + this.site.policy.interval
  }

  /** When the meter last moved on, or earlier. */
  protected get begunAt(): number {
    return this.rollAt - this.site.policy.interval
  }

  adopt(now: number): void {
    this.adoptLimit()
    this.roll(now)
  }

  /** The rule has changed, or the limit of a key. */
  protected adoptLimit(): void {
    this.limit = this.site.limited ? -1 : this.site.policy.limit
  }

  take(slot: number, cost: number, now: number): number {
    const { site } = this
    const limit = site.limitOf(slot)
    if (((site.table.flags[slot] as number) & BLOCKED) !== 0 || !this.countIfAllowed(slot, cost, limit, now)) return UNDECIDED
    this.allowed += cost
    return this.left(slot, limit, now)
  }

  fits(slot: number, cost: number, now: number): boolean {
    const { site } = this
    return ((site.table.flags[slot] as number) & BLOCKED) === 0 && this.hasCapacity(slot, cost, site.limitOf(slot), now)
  }

  allows(slot: number, cost: number, now: number): boolean {
    return this.site.blocks.of(slot, now) === undefined && this.hasCapacity(slot, cost, this.site.limitOf(slot), now)
  }

  fullBy(_slot: number, _cost: number, _now: number): SourceIndex | -1 {
    return -1
  }

  add(slot: number, cost: number, now: number): void {
    this.count(slot, cost, this.site.limitOf(slot), now)
    this.allowed += cost
  }

  untake(slot: number, mark: number, cost: number): void {
    this.restore(slot, mark)
    this.allowed -= cost
  }

  remaining(slot: number, now: number): number {
    return this.left(slot, this.site.limitOf(slot), now)
  }

  reject(slot: number, cost: number, now: number): Rejection {
    const { blocks, policy } = this.site
    const limit = this.site.limitOf(slot)
    // Only the wait is left to compute: the cost can fit later, and there is neither a block nor a cooldown.
    if (policy.cooldown === 0 && cost <= this.site.most(limit) && blocks.of(slot, now) === undefined)
      return { reason: 'limit', retryAfterMs: this.wait(slot, cost, limit, now) }
    if (policy.cooldown > 0 && blocks.of(slot, now) === undefined && !this.hasCapacity(slot, Math.min(cost, 1), limit, now)) {
      blocks.startCooldown(slot, now, now + this.wait(slot, Math.min(1, limit), limit, now))
    }
    return this.explain(slot, cost, now)
  }

  explain(slot: number, cost: number, now: number): Rejection {
    const { blocks } = this.site
    const limit = this.site.limitOf(slot)
    const block = blocks.of(slot, now)
    if (block?.manual === true) return { reason: 'blocked', retryAfterMs: block.until - now }
    const units = Math.min(cost, this.site.most(limit))
    const wait = this.hasCapacity(slot, units, limit, now) ? 0 : this.wait(slot, units, limit, now)
    // A cooldown ends when one unit fits, but this request may cost more.
    return block === undefined
      ? { reason: 'limit', retryAfterMs: wait }
      : { reason: 'cooldown', retryAfterMs: Math.max(block.until - now, wait) }
  }

  sourceOf(slot: number, _cost: number): SourceIndex {
    return this.site.isShared(slot) ? OVERFLOWED : LOCAL
  }

  refund(key: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.site.table.find(key)
    if (slot >= 0) this.giveBack(slot, ordinal, units, this.site.limitOf(slot), now)
  }

  refundNewest(slot: number, units: number, now: number): number {
    if (this.giveBack === LocalMeter.prototype.giveBack) return 0
    this.giveBack(slot, Number.POSITIVE_INFINITY as Ordinal, units, this.site.limitOf(slot), now)
    return units
  }

  reset(_key: string, slot: number, now: number): void {
    const { table } = this.site
    if (slot < 0) return
    table.fields.fill(0, slot * table.stride, (slot + 1) * table.stride)
    this.cleared(slot, now)
  }

  /** Removes all else that is kept of a key, because its numbers were set to 0. Default: nothing is kept. */
  protected cleared(_slot: number, _now: number): void {}

  recheck(_slot: number): void {
    this.adoptLimit()
  }

  forgotten(_slot: number): void {}

  makeRoom(now?: number): boolean {
    const at = now ?? this.begunAt
    return this.#search.step(this.site.table, this.rollAt, now, (from, to) => this.#forget(from, to, at, (slot) => this.unused(slot, at)))
  }

  sweep(from: number, now: number): number {
    const { end } = this.site.table
    const to = Math.min(end, from + SWEEP_STEP)
    this.#forget(from, to, now, (slot) => this.idle(slot, now))
    return to < end ? to : -1
  }

  usedOf(slot: number, now: number): number {
    const own = this.site.limitOf(slot)
    // For a key without a limit, count the use by the policy's limit: an infinite limit leaves everything.
    const limit = own === Number.POSITIVE_INFINITY ? this.site.policy.limit : own
    return Math.max(0, this.site.most(limit) - this.left(slot, limit, now))
  }

  ownOf(slot: number, now: number): number {
    return this.usedOf(slot, now)
  }

  #forget(from: number, to: number, now: number, may: (slot: number) => boolean): void {
    const { table, blocks } = this.site
    for (let slot = from; slot < to; slot++) {
      if (table.keys[slot] === undefined || blocks.of(slot, now) !== undefined) continue
      if (may(slot)) this.site.forget(slot)
    }
  }
}
