import { BLOCKED } from '../keys/key-table.ts'
import { LOCAL, OVERFLOWED, type SourceIndex } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Meter, MeterSite, Refusal } from './meter.ts'

/** Slots that one step of a walk looks at, so that a step takes about a millisecond. */
const STEP = 20_000
/** Slots that a new key in a full table looks at for an idle one. */
const EVICT_STEP = 1_000

/**
 * What the meters of one process have in common: blocks, cooldowns, refusals and keys that fall idle. An algorithm extends it by
 * how it counts. A key's numbers are `this.fields[slot * n]` to `this.fields[slot * n + n - 1]`, with n the algorithm's `fields`;
 * those of a new key are 0.
 *
 * `now` is the time in milliseconds by a clock that never goes back.
 */
export abstract class LocalMeter implements Meter {
  readonly site: MeterSite
  readonly surveyed: number = 50_000
  rollAt: number = Number.NEGATIVE_INFINITY
  admitted = 0
  #hand = 0
  #handAt = Number.NEGATIVE_INFINITY

  constructor(site: MeterSite) {
    this.site = site
  }

  /** The numbers of all keys. A full table gets others, so they are read anew at each call. */
  protected get fields(): Float64Array {
    return this.site.table.fields
  }

  /** Counts a request of `cost` units if it fits, and says whether it did. */
  protected abstract count(slot: number, cost: number, limit: number, now: number): boolean
  /** Whether a request of `cost` units fits; changes nothing that a later answer depends on. */
  protected abstract allows(slot: number, cost: number, limit: number, now: number): boolean
  /** Counts units whether or not they fit, e.g. of a charge. */
  protected abstract force(slot: number, cost: number, limit: number, now: number): void
  /** Puts the key's numbers back to what `mark` told of them, at the same moment. */
  protected abstract restore(slot: number, mark: number): void
  /** Units left; at least 0. */
  protected abstract left(slot: number, limit: number, now: number): number
  /** Milliseconds after which a request of `cost`, at most the limit, fits if no other comes before it. */
  protected abstract wait(slot: number, cost: number, limit: number, now: number): number
  /** Whether the key's numbers say no more than those of a new key. */
  protected abstract idle(slot: number, now: number): boolean
  /** Refunds units that were taken from the interval or bucket `ordinal`. */
  protected abstract giveBack(slot: number, ordinal: Ordinal, units: number, limit: number, now: number): void
  /** Milliseconds until units come back. */
  abstract resetAfter(slot: number, now: number): number
  /** What `restore` needs. */
  abstract mark(slot: number): number

  /** Moves on; idle keys are looked for when the time that it sets has come. */
  roll(now: number): void {
    this.rollAt = now + this.site.policy.interval
  }

  adopt(now: number): void {
    this.roll(now)
  }

  take(slot: number, cost: number, now: number): boolean {
    const { site } = this
    if (((site.table.flags[slot] as number) & BLOCKED) !== 0 || !this.count(slot, cost, site.limitOf(slot), now)) return false
    this.admitted += cost
    return true
  }

  fits(slot: number, cost: number, now: number): boolean {
    const { site } = this
    return ((site.table.flags[slot] as number) & BLOCKED) === 0 && this.allows(slot, cost, site.limitOf(slot), now)
  }

  admits(slot: number, cost: number, now: number): boolean {
    return this.site.blocks.of(slot, now) === undefined && this.allows(slot, cost, this.site.limitOf(slot), now)
  }

  fullBy(_slot: number, _cost: number, _now: number): SourceIndex | -1 {
    return -1
  }

  add(slot: number, cost: number, now: number): void {
    this.force(slot, cost, this.site.limitOf(slot), now)
    this.admitted += cost
  }

  untake(slot: number, mark: number, cost: number): void {
    this.restore(slot, mark)
    this.admitted -= cost
  }

  remaining(slot: number, now: number): number {
    return this.left(slot, this.site.limitOf(slot), now)
  }

  refuse(slot: number, cost: number, now: number): Refusal {
    const { blocks, policy } = this.site
    const limit = this.site.limitOf(slot)
    if (policy.cooldown > 0 && blocks.of(slot, now) === undefined && !this.allows(slot, Math.min(cost, 1), limit, now)) {
      blocks.startCooldown(slot, now, now + this.wait(slot, Math.min(1, limit), limit, now))
    }
    return this.explain(slot, cost, now)
  }

  explain(slot: number, cost: number, now: number): Refusal {
    const { blocks } = this.site
    const limit = this.site.limitOf(slot)
    const block = blocks.of(slot, now)
    if (block !== undefined) return { reason: block.manual ? 'blocked' : 'cooldown', retryAfter: block.until - now }
    return { reason: 'limit', retryAfter: this.wait(slot, Math.min(cost, limit), limit, now) }
  }

  sourceOf(slot: number, _cost: number): SourceIndex {
    return this.site.isShared(slot) ? OVERFLOWED : LOCAL
  }

  refund(key: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.site.table.find(key)
    if (slot >= 0) this.giveBack(slot, ordinal, units, this.site.limitOf(slot), now)
  }

  recheck(_slot: number): void {}

  forgotten(_slot: number): void {}

  makeRoom(): boolean {
    const { table } = this.site
    // The search goes round the table once between two rolls. After that every key in it is in use.
    if (this.#handAt !== this.rollAt) {
      this.#handAt = this.rollAt
      this.#hand = 0
    }
    const end = Math.min(table.end, this.#hand + EVICT_STEP)
    this.#forgetIdle(this.#hand, end, this.rollAt - this.site.policy.interval)
    this.#hand = end
    return !table.full
  }

  sweep(from: number, now: number): number {
    const { end } = this.site.table
    const to = Math.min(end, from + STEP)
    this.#forgetIdle(from, to, now)
    return to < end ? to : -1
  }

  usedOf(slot: number, now: number): number {
    return Math.max(0, this.site.limitOf(slot) - this.left(slot, this.site.limitOf(slot), now))
  }

  ownOf(slot: number): number {
    return this.usedOf(slot, this.rollAt - this.site.policy.interval)
  }

  #forgetIdle(from: number, to: number, now: number): void {
    const { table, blocks } = this.site
    for (let slot = from; slot < to; slot++) {
      if (table.keys[slot] === undefined || blocks.of(slot, now) !== undefined) continue
      if (this.idle(slot, now)) this.site.forget(slot)
    }
  }
}
