import { EARLY, MOST_KEPT } from '../../algorithms/roll.ts'
import { EARLY_RELEASE, SlidingCells, USUAL_RELEASE } from '../../algorithms/sliding-window/cells.ts'
import { baseOf, GATE, KNOWN, OTHERS, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { MOST_UNITS } from '../../keys/units.ts'
import type { Cell } from '../../store/contract.ts'
import { type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import { SlidingKey } from './key.ts'
import { countsByBucket } from './parts.ts'
import type { WindowShape } from './wait.ts'

/** Times its mean, or that of an even part of the limit, is usual for a bucket of a node. */
const USUAL = 1.25
/** The same for what a group may hold besides, times the mean of a bucket. */
const USUAL_GROUP = 0.25
/** So much of the limit within the time of a bucket is a burst. */
const BURST = 0.1
/** More than this part of a node's part of the limit within a part is a volley. */
const VOLLEY = 0.05
/** But no fewer units. */
const FEW_AT_ONCE = 6
/** The clock's uncertainty is allowed for up to this part of a bucket. */
const MOST_MARGIN = 0.1

/**
 * What a node knows of each key's sliding window.
 *
 * Of the record KNOWN is the subWindows' sum when it was last looked at plus what was counted since, OTHERS is KNOWN without the
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
    return ((this.bucket() - this.shape.subWindows) * this.shape.parts) as Ordinal
  }

  /** The first part of the bucket that holds a part. */
  firstOf(ordinal: Ordinal): Ordinal {
    const { parts } = this.shape
    return (Math.floor(ordinal / parts) * parts) as Ordinal
  }

  /** The first part of the group that holds a part. */
  #groupOf(ordinal: Ordinal): Ordinal {
    const { group } = this.shape
    return (Math.floor(ordinal / group) * group) as Ordinal
  }

  /** The cells that may hold units that were counted while the meter's ordinal was this one. */
  cellsOf(ordinal: Ordinal): readonly Ordinal[] {
    const parts = Array.from({ length: this.shape.group }, (_, part) => (ordinal + part) as Ordinal)
    return [...parts, this.firstOf(ordinal)]
  }

  /** When the bucket that holds a part ends. */
  leaves(ordinal: Ordinal): number {
    return startOf((this.firstOf(ordinal) + this.shape.parts) as Ordinal, this.#meter.storePolicy.width)
  }

  /** When all units of a key have left the window, in milliseconds since the epoch of the policy's clock; undefined without any. */
  emptyAt(slot: number): number | undefined {
    const { subWindows, parts, group } = this.shape
    const newest = this.uncounted(slot) > 0 ? this.#meter.ordinalOf(baseOf(slot)) : this.#keys.get(slot)?.cells.newest
    if (newest === undefined) return undefined
    const end = this.byBucket ? this.firstOf(newest) + parts : this.#groupOf(newest) + group
    return startOf((end + subWindows * parts) as Ordinal, this.#meter.storePolicy.width)
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

  /** Books what the fast path counted into the running part, or at the end of the group in which it was counted. */
  absorb(slot: number, key: SlidingKey, now: number): void {
    const base = baseOf(slot)
    const { fields } = this.#meter.table
    const ordinal = this.#meter.ordinalOf(base)
    const counted = this.uncounted(slot)
    if (counted !== 0) {
      fields[base + OTHERS] = fields[base + KNOWN] as number
      this.#book(key, ordinal === this.#meter.ordinal ? this.#partAt(now) : ordinal, counted)
      key.ownTaken += counted
    }
    if (ordinal > this.#meter.ordinal) this.#moveBack(base, key)
  }

  /** The part that runs, in the group that the meter is in. */
  #partAt(now: number): Ordinal {
    const { ordinal, storePolicy, time } = this.#meter
    const part = this.byBucket ? ordinalAt(time.at(now) - this.#margin(now), storePolicy.width) : ordinal
    return Math.max(ordinal, Math.min(part, ordinal + this.shape.group - 1)) as Ordinal
  }

  /** Units that are usual for a bucket of this node. */
  #mean({ cells }: SlidingKey): number {
    return Math.max(cells.own(), this.#meter.policy.limit / this.#meter.exchange.nodes) / this.shape.subWindows
  }

  /** Whether much of the limit came within the time of a bucket. After a cooldown all nodes open together, however it came. */
  isBurst({ cells, limit }: SlidingKey): boolean {
    return this.shape.parts > 1 && cells.total((this.#meter.ordinal - this.shape.parts) as Ordinal) >= BURST * limit
  }

  /** Units that may be counted before they are booked. */
  bookedTogether(key: SlidingKey): number {
    return Math.max(2, this.#mean(key) * USUAL_GROUP)
  }

  /**
   * Of large limits, what is no more than usual counts by bucket, in the bucket's first part, and a little more by group. So steady
   * traffic has a cell for each bucket, and only what comes in a burst has one for each part. As a bucket goes on more is usual of it: a
   * burst must not be counted by bucket because nothing came before. A flood that fills the window as soon as another one has left counts
   * by groups, or the window of the store, which ends with what the first one began with, would be full all the time.
   */
  #book(key: SlidingKey, part: Ordinal, units: number): void {
    const { cells } = key
    let ordinal = part
    let left = units
    if (this.byBucket) {
      const first = this.firstOf(ordinal)
      const group = this.#groupOf(ordinal)
      const mean = this.#mean(key)
      const usual = Math.min(USUAL * mean, 1 + (USUAL * mean * (ordinal + 1 - first)) / this.shape.parts)
      const flood = group >= key.openedIn - this.shape.group && group <= key.openedIn + this.shape.parts
      if (flood) ordinal = group
      if (ordinal > first) left -= takeUsual(cells, first, usual, left)
      if (ordinal > group && group > first) left -= takeUsual(cells, group, mean * USUAL_GROUP, left)
    }
    if (this.byBucket && left > 0 && ordinal > this.#groupOf(ordinal)) {
      left -= takeUsual(cells, ordinal, Math.max(FEW_AT_ONCE, (VOLLEY * this.#meter.policy.limit) / this.#meter.exchange.nodes), left)
      ordinal = this.#groupOf(ordinal)
    }
    if (left > 0) cells.take(ordinal, left)
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
    if (ahead > this.#ahead || ahead < this.#ahead - Math.max(margin, MOST_KEPT)) this.#ahead = ahead
    return now + this.#ahead + EARLY
  }

  /** The first part of the bucket that is leaving. */
  #leaving(now: number): Ordinal {
    const { parts, subWindows } = this.shape
    const bucket = Math.max(this.bucket(), Math.floor(this.edge(now) / (this.#meter.storePolicy.width * parts)))
    return ((bucket - subWindows) * parts) as Ordinal
  }

  /** The first part of the bucket that begins, as late as that may be. */
  opens(now: number): number {
    return this.#leaving(now) + this.shape.subWindows * this.shape.parts
  }

  /** The part that is leaving: those of its bucket before it have left. */
  #edge(now: number): Ordinal {
    const part = Math.max(this.#meter.ordinal, ordinalAt(this.edge(now), this.#meter.storePolicy.width))
    return (part - this.shape.subWindows * this.shape.parts) as Ordinal
  }

  /**
   * W as far as known. If the clock is slow, what seems to count has left already. So W is taken as late as the
   * clock's uncertainty allows: units that have left must not close the key for a long time.
   */
  total(cells: SlidingCells, now: number): number {
    const left = this.#edge(now)
    const group = this.#groupOf(left)
    return cells.counted(this.byBucket ? this.#leaving(now) : group, group, left)
  }

  /** What is released already of the part that leaves, or of what leaves with its bucket. */
  early({ cells, limit }: Pick<SlidingKey, 'cells' | 'limit'>, now: number): number {
    if (this.byBucket) {
      const ordinal = this.#leaving(now)
      return this.#released(cells.unitsIn(ordinal), USUAL_RELEASE * limit, ordinal, this.shape.parts, now)
    }
    const ordinal = this.#groupOf(this.#edge(now))
    return this.#released(cells.unitsIn(ordinal), EARLY_RELEASE * limit, ordinal, this.shape.group, now)
  }

  /** What is released of units that begin to leave with the part `ordinal` and have left when `span` parts have. */
  #released(units: number, most: number, ordinal: Ordinal, span: number, now: number): number {
    const { parts, subWindows } = this.shape
    const over = (this.edge(now) / this.#meter.storePolicy.width - ordinal - subWindows * parts) / span
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

/** Takes units into a cell in which so many are usual. Returns how many. */
function takeUsual(cells: SlidingCells, ordinal: Ordinal, most: number, units: number): number {
  const usual = Math.min(units, Math.max(0, Math.floor(most - (cells.find(ordinal)?.taken ?? 0))))
  if (usual > 0) cells.take(ordinal, usual)
  return usual
}
