import type { Paces } from '../../algorithms/bucket/paces.ts'
import { drained } from '../../algorithms/bucket/step.ts'
import { EARLY } from '../../algorithms/roll.ts'
import { baseOf, GATE, type KeyTable, KNOWN, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import type { Cell, StorePolicy } from '../../store/contract.ts'
import { sumOf } from '../../store/units.ts'
import { type Ordinal, startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { Alone } from './alone.ts'
import { EarlyDrop, type Shape } from './early-drop.ts'
import { BucketKey } from './key.ts'
import type { Levels } from './levels.ts'
import type { StorePolicies } from './store-policies.ts'

/** Sums of fractions differ by less than this part. */
const SUMS = 1e-9
/** Milliseconds by which a store's cell may be ahead of this process's time. */
const AHEAD = 1_000

/** The state of each key's bucket: its confirmed level, this process's cells that are part of it, and the store's last answer. */
export class BucketRecords {
  readonly levels: Levels
  readonly paces: Paces
  readonly #meter: GatedMeter
  readonly #table: KeyTable
  readonly #policies: StorePolicies
  readonly #alone: Alone
  readonly #earlyDrop: boolean
  readonly #keys = new SlotMap<BucketKey>()

  /** @param earlyDrop whether requests are allowed at random if a bucket is nearly full */
  constructor(meter: GatedMeter, levels: Levels, paces: Paces, policies: StorePolicies, alone: Alone, earlyDrop: boolean) {
    this.#meter = meter
    this.#table = meter.table
    this.levels = levels
    this.paces = paces
    this.#policies = policies
    this.#alone = alone
    this.#earlyDrop = earlyDrop
  }

  find(slot: number): BucketKey | undefined {
    return this.#keys.get(slot)
  }

  at(slot: number): BucketKey {
    let key = this.#keys.get(slot)
    if (key === undefined) this.#keys.set(slot, (key = new BucketKey(this.#earlyDrop ? new EarlyDrop() : undefined)))
    return key
  }

  forgotten(slot: number): void {
    this.#keys.delete(slot)
    this.paces.forget(slot)
  }

  /** The capacity of a key's bucket. */
  most(slot: number): number {
    const { site } = this.#meter
    return site.most(site.limitOf(slot))
  }

  shape(slot: number): Shape {
    const { site, policy } = this.#meter
    return { most: site.most(site.limitOf(slot)), drain: this.paces.of(slot) / policy.interval, interval: policy.interval }
  }

  /** The store's policy for the limit at which the key's bucket drains. */
  policyOf(slot: number): StorePolicy {
    return this.#policies.of(this.paces.of(slot))
  }

  /** Units that this process has allowed and that have not drained. */
  own(slot: number): number {
    return (this.#keys.get(slot)?.cells.own() ?? 0) + (this.#table.fields[baseOf(slot)] as number)
  }

  /** Units among them that the store lacks. */
  unsent(slot: number): number {
    return (this.#keys.get(slot)?.cells.unsent() ?? 0) + (this.#table.fields[baseOf(slot)] as number)
  }

  /** Whether a key has no state that is still needed. */
  idle(slot: number, now: number): boolean {
    if (this.levels.at(slot, now) > 0 || (this.#table.fields[baseOf(slot)] as number) > 0) return false
    const key = this.#keys.get(slot)
    return key === undefined || (key.cells.oldest === undefined && !(now < key.closedUntil))
  }

  /** Moves the units that the request path counted to their cell. */
  refresh(slot: number, now: number): BucketKey {
    const { ordinal: running, tag } = this.#meter
    const key = this.at(slot)
    const base = baseOf(slot)
    const { fields } = this.#table
    const counted = fields[base + KNOWN] as number
    const ordinal = this.#meter.ordinalOf(base)
    if (counted > 0) {
      fields[base + KNOWN] = 0
      key.cells.add(ordinal, counted, Math.max(0, this.levels.at(slot, now) - counted), this.#policies.spans(this.paces.of(slot)))
      key.forecast.add(counted)
      this.#alone.add(key, slot, counted, now)
    }
    if (ordinal > running) key.cells.moveBack(running)
    fields[base + TAG] = tag
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    return key
  }

  /** The cells to send. None if there is nothing to send or to learn. */
  toSend(slot: number, key: BucketKey, now: number): readonly Cell[] {
    const { ordinal, time } = this.#meter
    const cells = key.cells.toSend(key.resend)
    key.resent = key.resend
    key.resend = false
    if (key.tellsLevel) {
      const { width, drain = 0 } = this.policyOf(slot)
      const since = time.at(now) / width - ordinal
      const level = this.levels.at(slot, now)
      // Units of this very cell count from the next one on: because the bucket does not empty until then, it makes no difference.
      key.cells.cut((level >= drain ? ordinal : ordinal - 1) as Ordinal)
      if (level > 0) cells.push({ ordinal, taken: 0, given: 0, level: level + Math.max(0, since) * drain })
    }
    // There is nothing to send, but the answer shows the units that others allowed during an outage.
    if (cells.length === 0 && key.guess !== undefined) cells.push({ ordinal, taken: 0, given: 0 })
    return cells
  }

  /**
   * Whether the store has lost units: all processes together have fewer than it has acknowledged of this one, or than it had received
   * before.
   */
  isLost(key: BucketKey, { ordinal, taken }: Cell): boolean {
    const before = ordinal > key.heardIn ? key.heard : 0
    return taken < Math.max(before, key.cells.acknowledged()) * (1 - SUMS)
  }

  /**
   * Takes over the store's counts of a key, as far as they are new. Returns whether the level fell.
   *
   * @param announced it may contain units that are in flight from here
   * @param exact it contains all units that this process has from the others: after a refund the level falls
   */
  learn(
    slot: number,
    key: BucketKey,
    { ordinal, taken, given, level = 0 }: Cell,
    now: number,
    { announced, exact }: { readonly announced: boolean; readonly exact: boolean },
  ): boolean {
    const { time, policy, storePolicy } = this.#meter
    key.heard = taken
    key.heardIn = ordinal
    const { width } = storePolicy
    if (startOf(ordinal, width) > time.at(now) + AHEAD) return false
    const pace = this.paces.of(slot)
    const then = time.monotonicAt(startOf(ordinal, width))
    const unsent = key.cells.levelUnsent(time.at(now), width, pace, policy.interval, announced)
    const learned = sumOf(drained(level, now - then, pace, policy.interval), unsent)
    const known = this.levels.at(slot, now)
    // Ignore a difference from rounded times of the epoch, or clients would wait for it after the end of their `retryAfterMs`.
    const more = learned > known + this.shape(slot).drain * EARLY
    if (more || (exact && given > key.givenHeard)) this.levels.set(slot, learned, now)
    key.givenHeard = Math.max(key.givenHeard, given)
    key.forecast.learn(this.levels.at(slot, now), now)
    if (announced && level + 1 > this.most(slot)) key.earlyDrop?.arm(now, policy.interval)
    return learned < known
  }
}
