import type { Paces } from '../../algorithms/bucket/paces.ts'
import { drained } from '../../algorithms/bucket/step.ts'
import { EARLY } from '../../algorithms/roll.ts'
import { baseOf, GATE, type KeyTable, KNOWN, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { sumOf } from '../../keys/units.ts'
import type { Cell, StorePolicy } from '../../store/contract.ts'
import { type Ordinal, startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import type { Alone } from './alone.ts'
import { EarlyDrop, type Shape } from './early-drop.ts'
import { BucketKey } from './key.ts'
import type { Levels } from './levels.ts'
import type { StorePolicies } from './store-policies.ts'

/** Sums of fractions differ by less than this part. */
const SUMS = 1e-9
/** A store's cell may be so far ahead of this node's time, in milliseconds. */
const AHEAD = 1_000

/** What a node knows of each key's bucket: the level, its own cells that it is the sum of, and what the store said. */
export class BucketRecords {
  readonly levels: Levels
  readonly paces: Paces
  readonly #meter: GatedMeter
  readonly #table: KeyTable
  readonly #policies: StorePolicies
  readonly #alone: Alone
  readonly #earlyDrop: boolean
  readonly #keys = new SlotMap<BucketKey>()

  /** @param earlyDrop whether requests are let in by chance where a bucket is nearly full */
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

  forget(slot: number): void {
    this.#keys.delete(slot)
    this.paces.forget(slot)
  }

  /** What a key's bucket holds. */
  most(slot: number): number {
    const { site } = this.#meter
    return site.most(site.limitOf(slot))
  }

  shape(slot: number): Shape {
    const { site, policy } = this.#meter
    return { most: site.most(site.limitOf(slot)), drain: this.paces.of(slot) / policy.interval, interval: policy.interval }
  }

  /** What the store must know of the policy, by the limit that the key's bucket runs out by. */
  policyOf(slot: number): StorePolicy {
    return this.#policies.of(this.paces.of(slot))
  }

  /** Units that this node has allowed, as far as they are not over. */
  own(slot: number): number {
    return (this.#keys.get(slot)?.cells.own() ?? 0) + (this.#table.fields[baseOf(slot)] as number)
  }

  /** Units among them that the store lacks. */
  unsent(slot: number): number {
    return (this.#keys.get(slot)?.cells.unsent() ?? 0) + (this.#table.fields[baseOf(slot)] as number)
  }

  /** Whether nothing of a key is left that anybody needs. */
  idle(slot: number, now: number): boolean {
    if (this.levels.at(slot, now) > 0 || (this.#table.fields[baseOf(slot)] as number) > 0) return false
    const key = this.#keys.get(slot)
    return key === undefined || (key.cells.oldest === undefined && !(now < key.closedUntil))
  }

  /** Books what the request path counted into its cell. */
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

  /** The cells that the store is to hear of; none where there is nothing to say or to learn. */
  toSend(slot: number, key: BucketKey, now: number): readonly Cell[] {
    const { ordinal, time } = this.#meter
    const cells = key.cells.toSend(key.resend)
    key.resent = key.resend
    key.resend = false
    if (key.tellsLevel) {
      const { width, drain = 0 } = this.policyOf(slot)
      const since = time.at(now) / width - ordinal
      const level = this.levels.at(slot, now)
      // Units of this very cell count from the next one on: as the bucket does not run out until then, it makes no difference.
      key.cells.cut((level >= drain ? ordinal : ordinal - 1) as Ordinal)
      if (level > 0) cells.push({ ordinal, taken: 0, given: 0, level: level + Math.max(0, since) * drain })
    }
    // There is nothing to send, but something to learn: what the others allowed during an outage.
    if (cells.length === 0 && key.guess !== undefined) cells.push({ ordinal, taken: 0, given: 0 })
    return cells
  }

  /** Whether the store has forgotten units: all nodes together have less than it has acknowledged of this one, or than it had heard of before. */
  isLost(key: BucketKey, { ordinal, taken }: Cell): boolean {
    const before = ordinal > key.heardIn ? key.heard : 0
    return taken < Math.max(before, key.cells.acknowledged()) * (1 - SUMS)
  }

  /**
   * Takes over what the store says of a key, as far as it is news. Whether the level fell by it.
   *
   * @param announced it may hold units that are under way from here
   * @param exact the store knows all that this node has of the others: where something was refunded, the level falls
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
    // A difference that rounded times of the epoch make is none, or clients would wait for it after the time that they were told.
    const more = learned > known + this.shape(slot).drain * EARLY
    if (more || (exact && given > key.givenHeard)) this.levels.set(slot, learned, now)
    key.givenHeard = Math.max(key.givenHeard, given)
    key.forecast.learn(this.levels.at(slot, now), now)
    if (announced && level + 1 > this.most(slot)) key.earlyDrop?.arm(now, policy.interval)
    return learned < known
  }
}
