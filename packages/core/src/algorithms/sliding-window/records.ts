import { baseOf, GATE, KNOWN, OTHERS, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { MOST_UNITS } from '../../keys/units.ts'
import type { Cell } from '../../store/contract.ts'
import { type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import { EARLY } from '../roll.ts'
import type { GatedMeter } from '../shared/gated-meter.ts'
import { EARLY_RELEASE, SlidingCells, USUAL_RELEASE } from './cells.ts'
import { SlidingKey } from './key.ts'
import { countsByBucket } from './parts.ts'
import type { WindowShape } from './wait.ts'

/** Times its mean, or that of an even part of the limit, is usual for a bucket of a node. */
const USUAL = 1.5
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
  /** By how much the moment that W is of was ahead of the monotonic clock. */
  #ahead: number = Number.NEGATIVE_INFINITY

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

  /** The running bucket. */
  bucket(): number {
    return Math.floor(this.#meter.ordinal / this.shape.parts)
  }

  /** The first part of the oldest bucket of the window that ends now. */
  oldest(): Ordinal {
    return ((this.bucket() - this.shape.buckets) * this.shape.parts) as Ordinal
  }

  /** The first part of the bucket that holds a part. */
  firstOf(ordinal: Ordinal): Ordinal {
    const { parts } = this.shape
    return (Math.floor(ordinal / parts) * parts) as Ordinal
  }

  /** When the bucket that holds a part ends. */
  leaves(ordinal: Ordinal): number {
    return startOf((this.firstOf(ordinal) + this.shape.parts) as Ordinal, this.#meter.storePolicy.width)
  }

  /** When all units of a key have left the window, in milliseconds since the epoch of the policy's clock; undefined without any. */
  emptyAt(slot: number): number | undefined {
    const { buckets, parts } = this.shape
    const newest = this.uncounted(slot) > 0 ? this.#meter.ordinalOf(baseOf(slot)) : this.#keys.get(slot)?.cells.newest
    if (newest === undefined) return undefined
    const end = this.byBucket ? this.firstOf(newest) + parts : newest + 1
    return startOf((end + buckets * parts) as Ordinal, this.#meter.storePolicy.width)
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
      this.#book(key, ordinal, counted)
      key.ownTaken += counted
    }
    if (ordinal > this.#meter.ordinal) this.#moveBack(base, key)
  }

  /**
   * Of large limits, what is no more than usual counts by bucket, in the bucket's first part. So steady traffic has a cell for each
   * bucket, and only what comes in a burst has more.
   */
  #book({ cells }: SlidingKey, ordinal: Ordinal, units: number): void {
    const first = this.firstOf(ordinal)
    let usual = 0
    if (this.byBucket && ordinal > first) {
      const mean = Math.max(cells.own(), this.#meter.policy.limit / this.#meter.exchange.nodes) / this.shape.buckets
      usual = Math.min(units, Math.max(0, Math.floor(USUAL * mean - (cells.find(first)?.taken ?? 0))))
    }
    if (usual > 0) cells.take(first, usual)
    if (units > usual) cells.take(ordinal, units - usual)
  }

  /** Units that were counted by a clock that was ahead (see `adoptTime`) count now. */
  #moveBack(base: number, key: SlidingKey): void {
    const { ordinal, table, tag } = this.#meter
    key.cells.moveBack(ordinal)
    key.lookedAt = Math.min(key.lookedAt, this.bucket())
    key.awayIn = Math.min(key.awayIn, ordinal)
    table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    table.fields[base + TAG] = tag
  }

  /** What the fast path has counted and nobody has booked into its bucket yet. */
  uncounted(slot: number): number {
    const { fields } = this.#meter.table
    return (fields[baseOf(slot) + KNOWN] as number) - (fields[baseOf(slot) + OTHERS] as number)
  }

  /** Whether steady traffic is counted by bucket, and what a bucket's first part holds leaves with the bucket. */
  get byBucket(): boolean {
    return countsByBucket(this.#meter.policy.limit, this.shape.parts)
  }

  /**
   * The moment that W is of, in milliseconds since the epoch of the policy's clock: as late as the clock's uncertainty allows. It does not
   * go back by a correction within that uncertainty, or what clients were told would be too short.
   */
  edge(now: number): number {
    const margin = this.#margin(now)
    const ahead = this.#meter.time.at(now) - now + margin
    if (ahead > this.#ahead || ahead < this.#ahead - margin) this.#ahead = ahead
    return now + this.#ahead + EARLY
  }

  /** The first part of the bucket that is leaving. */
  #leaving(now: number): Ordinal {
    const { parts, buckets } = this.shape
    const bucket = Math.max(this.bucket(), Math.floor(this.edge(now) / (this.#meter.storePolicy.width * parts)))
    return ((bucket - buckets) * parts) as Ordinal
  }

  /** The part that is leaving: those of its bucket before it have left. */
  #edge(now: number): Ordinal {
    const part = Math.max(this.#meter.ordinal, ordinalAt(this.edge(now), this.#meter.storePolicy.width))
    return (part - this.shape.buckets * this.shape.parts) as Ordinal
  }

  /**
   * W as far as known. If the clock is slow, what seems to count has left already. So W is taken as late as the
   * clock's uncertainty allows: units that have left must not close the key for a long time.
   */
  total(cells: SlidingCells, now: number): number {
    return cells.counted(this.#leaving(now), this.#edge(now), this.byBucket)
  }

  /** What is released already of the part that leaves, or of what leaves with its bucket. */
  early({ cells, limit }: Pick<SlidingKey, 'cells' | 'limit'>, now: number): number {
    if (this.byBucket) {
      const ordinal = this.#leaving(now)
      return this.#released(cells.unitsIn(ordinal), USUAL_RELEASE * limit, ordinal, this.shape.parts, now)
    }
    const ordinal = this.#edge(now)
    return this.#released(cells.unitsIn(ordinal), EARLY_RELEASE * limit, ordinal, 1, now)
  }

  /** What is released of units that begin to leave with the part `ordinal` and have left when `span` parts have. */
  #released(units: number, most: number, ordinal: Ordinal, span: number, now: number): number {
    const { parts, buckets } = this.shape
    const over = (this.edge(now) / this.#meter.storePolicy.width - ordinal - buckets * parts) / span
    return Math.max(0, Math.min(most, units * Math.min(1, over)))
  }

  /** W of a store's counts. */
  usedIn(cells: readonly Cell[], now: number): number {
    const told = new SlidingCells()
    for (const { ordinal, taken, given } of cells) told.at(ordinal).others = taken - given
    told.dropBefore(this.#leaving(now))
    return this.total(told, now) - this.early({ cells: told, limit: this.#meter.policy.limit }, now)
  }

  /** Units before the part `end` if all of a bucket leaves at once, when that of the part `oldest` is the one that leaves. */
  whole({ cells, limit }: SlidingKey, now: number, oldest: Ordinal = this.#leaving(now), end: number = Number.POSITIVE_INFINITY): number {
    const { parts } = this.shape
    return cells.total(oldest, end) - this.#released(cells.total(oldest, oldest + parts), EARLY_RELEASE * limit, oldest, parts, now)
  }

  /** W when the key was last looked at, plus what was counted since. */
  known(slot: number, key: SlidingKey): number {
    return (this.#meter.table.fields[baseOf(slot) + KNOWN] as number) - key.early
  }

  /** By how much the clock may be slow, in milliseconds. */
  #margin(now: number): number {
    return Math.min(this.#meter.time.uncertainty(now), this.#meter.storePolicy.width * this.shape.parts * MOST_MARGIN)
  }

  /** Whether nothing is left of a key. */
  isIdle(slot: number): boolean {
    const key = this.#keys.get(slot)
    if (key === undefined) return true
    key.cells.dropBefore(this.oldest())
    return key.cells.empty
  }
}
