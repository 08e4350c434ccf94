import { baseOf, GATE, KNOWN, OTHERS, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { MOST_UNITS, sumOf } from '../../keys/units.ts'
import { type Ordinal, startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../shared/gated-meter.ts'
import { EARLY_RELEASE, type SlidingCells } from './cells.ts'
import { SlidingKey } from './key.ts'
import type { WindowShape } from './wait.ts'

/** The clock's uncertainty is allowed for up to this part of a bucket. */
const MOST_MARGIN = 0.1

/**
 * What a node knows of each key's sliding window.
 *
 * Of the record KNOWN is the buckets' sum when it was last looked at plus what was counted since, OTHERS is KNOWN without the
 * latter; W is KNOWN less what is released early. Apart, since a fraction would spoil the difference.
 */
export class SlidingRecords {
  readonly shape: WindowShape
  readonly #meter: GatedMeter
  readonly #keys: SlotMap<SlidingKey> = new SlotMap()

  constructor(meter: GatedMeter, shape: WindowShape) {
    this.#meter = meter
    this.shape = shape
  }

  find(slot: number): SlidingKey | undefined {
    return this.#keys.get(slot)
  }

  /** What is kept of a key, made if need be. */
  at(slot: number): SlidingKey {
    let key = this.#keys.get(slot)
    if (key === undefined) this.#keys.set(slot, (key = new SlidingKey()))
    return key
  }

  /** The key of a slot is forgotten. */
  forgotten(slot: number): void {
    this.#keys.delete(slot)
  }

  /** The oldest bucket of the window that ends now. */
  oldest(): Ordinal {
    return (this.#meter.ordinal - this.shape.buckets) as Ordinal
  }

  /** Computes W of a key whose counts have been booked. */
  update(slot: number, key: SlidingKey, now: number): void {
    const base = baseOf(slot)
    const { fields } = this.#meter.table
    key.cells.dropBefore(this.oldest())
    if (key.cells.empty) {
      // This way the first exchange of an attack already tells its pace.
      key.idleAt = now
      key.rate = key.paceUnits = key.paceTime = 0
    }
    const known = Math.min(MOST_UNITS, this.total(key.cells, now))
    key.early = this.early(key, now)
    fields[base + KNOWN] = known
    fields[base + OTHERS] = known
    fields[base + TAG] = this.#meter.tag
  }

  /** Books what the fast path counted into its bucket. */
  absorb(slot: number, key: SlidingKey): void {
    const base = baseOf(slot)
    const { fields } = this.#meter.table
    const ordinal = this.#meter.ordinalOf(base)
    const counted = this.uncounted(slot)
    if (counted !== 0) {
      fields[base + OTHERS] = fields[base + KNOWN] as number
      const bucket = key.cells.at(ordinal)
      bucket.taken = sumOf(bucket.taken, counted)
      key.ownTaken += counted
    }
    if (ordinal > this.#meter.ordinal) this.#moveBack(base, key)
  }

  /** Units that were counted by a clock that was ahead (see `adoptTime`) count now. */
  #moveBack(base: number, key: SlidingKey): void {
    const { ordinal, table, tag } = this.#meter
    key.cells.moveBack(ordinal)
    key.lookedAt = Math.min(key.lookedAt, ordinal) as Ordinal
    key.awayIn = Math.min(key.awayIn, ordinal)
    table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    table.fields[base + TAG] = tag
  }

  /** What the fast path has counted and nobody has booked into its bucket yet. */
  uncounted(slot: number): number {
    const { fields } = this.#meter.table
    return (fields[baseOf(slot) + KNOWN] as number) - (fields[baseOf(slot) + OTHERS] as number)
  }

  /**
   * W as far as known. If the clock is slow, a bucket that seems to count has left already. So W is taken as late as the
   * clock's uncertainty allows: units that have left must not close the key for a long time.
   */
  total(cells: SlidingCells, now: number): number {
    return cells.total((this.oldest() + Math.floor(this.into(now))) as Ordinal)
  }

  /** What of the oldest bucket is released already. */
  early({ cells, limit }: SlidingKey, now: number): number {
    const into = this.into(now)
    const units = cells.unitsIn((this.oldest() + Math.floor(into)) as Ordinal)
    return Math.max(0, Math.min(EARLY_RELEASE * limit, units * (into - Math.floor(into))))
  }

  /** W when the key was last looked at, plus what was counted since. */
  known(slot: number, key: SlidingKey): number {
    return (this.#meter.table.fields[baseOf(slot) + KNOWN] as number) - key.early
  }

  /** How much of the running bucket may be over, in buckets. */
  into(now: number): number {
    const { ordinal, storePolicy, time } = this.#meter
    return Math.max(0, (time.at(now) + this.margin(now) - startOf(ordinal, storePolicy.width)) / storePolicy.width)
  }

  /** By how much the clock may be slow, in milliseconds. */
  margin(now: number): number {
    return Math.min(this.#meter.time.uncertainty(now), this.#meter.storePolicy.width * MOST_MARGIN)
  }

  /** Whether nothing is left of a key. */
  isIdle(slot: number): boolean {
    const key = this.#keys.get(slot)
    if (key === undefined) return true
    key.cells.dropBefore(this.oldest())
    return key.cells.empty
  }
}
