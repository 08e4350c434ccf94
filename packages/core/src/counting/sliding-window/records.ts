import { EARLY, MOST_KEPT } from '../../algorithms/roll.ts'
import { EARLY_RELEASE, SlidingCells, USUAL_RELEASE } from '../../algorithms/sliding-window/cells.ts'
import { baseOf, GATE, KNOWN, OTHERS, TAG } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import type { Cell } from '../../store/contract.ts'
import { MOST_UNITS } from '../../store/units.ts'
import { type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import type { GatedMeter } from '../gated-meter.ts'
import { SlidingKey } from './key.ts'
import { countsByBucket } from './parts.ts'
import type { WindowShape } from './wait.ts'

/** Units are usual for a sub-window up to this multiple of its process's mean, or of an even part of the limit. */
const USUAL = 1.25
/** The same for a group's further units, times the mean of a sub-window. */
const USUAL_GROUP = 0.25
/** The part of the limit that makes a burst if it comes within the time of a sub-window. */
const BURST = 0.1
/** More than this part of a process's share of the limit within a part is a volley. */
const VOLLEY = 0.05
/** But no fewer units. */
const FEW_AT_ONCE = 6
/** The clock's uncertainty is allowed for up to this part of a sub-window. */
const MOST_MARGIN = 0.1

/**
 * The state of each key's sliding window.
 *
 * In a record, KNOWN is the sum of the sub-windows at the last update plus the units counted since, and OTHERS is KNOWN without the latter.
 * W is KNOWN less the units released early. These are stored apart, because a fraction would spoil the difference.
 */
export class SlidingRecords {
  readonly shape: WindowShape
  readonly #meter: GatedMeter
  readonly #keys: SlotMap<SlidingKey> = new SlotMap()
  /** How far the moment of W was ahead of the monotonic clock. */
  #ahead: number = Number.NEGATIVE_INFINITY

  constructor(meter: GatedMeter, shape: WindowShape) {
    this.#meter = meter
    this.shape = shape
  }

  find(slot: number): SlidingKey | undefined {
    return this.#keys.get(slot)
  }

  /** The state of a key, created if it has none. */
  at(slot: number): SlidingKey {
    let key = this.#keys.get(slot)
    if (key === undefined) this.#keys.set(slot, (key = new SlidingKey()))
    return key
  }

  /** The key of a slot is removed. */
  forgotten(slot: number): void {
    this.#keys.delete(slot)
  }

  /** The running sub-window. */
  bucket(): number {
    return Math.floor(this.#meter.ordinal / this.shape.parts)
  }

  /** The first part of the oldest sub-window of the window that ends now. */
  oldest(): Ordinal {
    return ((this.bucket() - this.shape.subWindows) * this.shape.parts) as Ordinal
  }

  /** The first part of the sub-window that contains a part. */
  firstOf(ordinal: Ordinal): Ordinal {
    const { parts } = this.shape
    return (Math.floor(ordinal / parts) * parts) as Ordinal
  }

  /** The first part of the group that contains a part. */
  #groupOf(ordinal: Ordinal): Ordinal {
    const { group } = this.shape
    return (Math.floor(ordinal / group) * group) as Ordinal
  }

  /** The cells that may have units that were counted while the meter's ordinal was this one. */
  cellsOf(ordinal: Ordinal): readonly Ordinal[] {
    const parts = Array.from({ length: this.shape.group }, (_, part) => (ordinal + part) as Ordinal)
    return [...parts, this.firstOf(ordinal)]
  }

  /** When the sub-window that contains a part ends. */
  leaves(ordinal: Ordinal): number {
    return startOf((this.firstOf(ordinal) + this.shape.parts) as Ordinal, this.#meter.storePolicy.width)
  }

  /** When all units of a key have left the window, in milliseconds since the epoch of the policy's clock. Undefined without any. */
  emptyAt(slot: number): number | undefined {
    const { subWindows, parts, group } = this.shape
    const newest = this.uncounted(slot) > 0 ? this.#meter.ordinalOf(baseOf(slot)) : this.#keys.get(slot)?.cells.newest
    if (newest === undefined) return undefined
    const end = this.byBucket ? this.firstOf(newest) + parts : this.#groupOf(newest) + group
    return startOf((end + subWindows * parts) as Ordinal, this.#meter.storePolicy.width)
  }

  /** Computes W of a key whose counts were booked. */
  update(slot: number, key: SlidingKey, now: number): void {
    const base = baseOf(slot)
    const { fields } = this.#meter.table
    key.cells.dropBefore(this.oldest())
    if (key.cells.empty) {
      // So the first sync of an attack already shows its pace.
      key.idleAt = now
      key.rate = key.paceUnits = key.paceTime = 0
    }
    const known = Math.min(MOST_UNITS, this.total(key.cells, now))
    key.early = this.early(key, now)
    fields[base + KNOWN] = known
    fields[base + OTHERS] = known
    fields[base + TAG] = this.#meter.tag
  }

  /** Books the fast path's units into the running part, or at the end of the group in which they were counted. */
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

  /** The running part, in the group that the meter is in. */
  #partAt(now: number): Ordinal {
    const { ordinal, storePolicy, time } = this.#meter
    const part = this.byBucket ? ordinalAt(time.at(now) - this.#margin(now), storePolicy.width) : ordinal
    return Math.max(ordinal, Math.min(part, ordinal + this.shape.group - 1)) as Ordinal
  }

  /** Usual units of a sub-window of this process. */
  #mean({ cells }: SlidingKey): number {
    return Math.max(cells.own(), this.#meter.policy.limit / this.#meter.exchange.nodes) / this.shape.subWindows
  }

  /** Whether much of the limit came within the time of a sub-window. After a cooldown all processes open together, however it came. */
  isBurst({ cells, limit }: SlidingKey): boolean {
    return this.shape.parts > 1 && cells.total((this.#meter.ordinal - this.shape.parts) as Ordinal) >= BURST * limit
  }

  /** Units that may be counted before they are booked. */
  bookedTogether(key: SlidingKey): number {
    return Math.max(2, this.#mean(key) * USUAL_GROUP)
  }

  /**
   * With large limits, usual units are counted by sub-window, in its first part, and a few more by group. So steady traffic has a cell for
   * each sub-window, and only bursts have one for each part. The usual number grows while a sub-window runs: otherwise a burst would be
   * counted by sub-window because there was nothing before it. A flood that fills the window as soon as another one has left is counted by
   * groups. Otherwise the store's window, which ends with the first units of the earlier flood, would be full all the time.
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

  /** Moves units that a clock that was ahead counted (see `adoptTime`) to now. */
  #moveBack(base: number, key: SlidingKey): void {
    const { ordinal, table, tag } = this.#meter
    key.cells.moveBack(ordinal)
    key.lookedAt = Math.min(key.lookedAt, this.bucket())
    key.awayIn = Math.min(key.awayIn, ordinal)
    table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    table.fields[base + TAG] = tag
  }

  /** Units that the fast path has counted and that are not booked into a cell yet. */
  uncounted(slot: number): number {
    const { fields } = this.#meter.table
    return (fields[baseOf(slot) + KNOWN] as number) - (fields[baseOf(slot) + OTHERS] as number)
  }

  /** Whether steady traffic is counted by sub-window, so that the units of its first part leave with the whole sub-window. */
  get byBucket(): boolean {
    return countsByBucket(this.#meter.policy.limit, this.shape.parts)
  }

  /**
   * The moment of W, in milliseconds since the epoch of the policy's clock: as late as the clock's uncertainty allows. A correction within
   * that uncertainty does not move it back, or `retryAfterMs` in earlier answers would be too short.
   */
  edge(now: number): number {
    const margin = this.#margin(now)
    const ahead = this.#meter.time.at(now) - now + margin
    if (ahead > this.#ahead || ahead < this.#ahead - Math.max(margin, MOST_KEPT)) this.#ahead = ahead
    return now + this.#ahead + EARLY
  }

  /** The first part of the leaving sub-window. */
  #leaving(now: number): Ordinal {
    const { parts, subWindows } = this.shape
    const bucket = Math.max(this.bucket(), Math.floor(this.edge(now) / (this.#meter.storePolicy.width * parts)))
    return ((bucket - subWindows) * parts) as Ordinal
  }

  /** The first part of the next sub-window, as late as that may be. */
  opens(now: number): number {
    return this.#leaving(now) + this.shape.subWindows * this.shape.parts
  }

  /** The leaving part: earlier ones of its sub-window have left. */
  #edge(now: number): Ordinal {
    const part = Math.max(this.#meter.ordinal, ordinalAt(this.edge(now), this.#meter.storePolicy.width))
    return (part - this.shape.subWindows * this.shape.parts) as Ordinal
  }

  /**
   * W by confirmed counts. If the clock is slow, units that seem to count have already left. So W is computed as late as the clock's
   * uncertainty allows: units that have left must not close the key for a long time.
   */
  total(cells: SlidingCells, now: number): number {
    const left = this.#edge(now)
    const group = this.#groupOf(left)
    return cells.counted(this.byBucket ? this.#leaving(now) : group, group, left)
  }

  /** Units already released of the leaving part, or of the units that leave with its sub-window. */
  early({ cells, limit }: Pick<SlidingKey, 'cells' | 'limit'>, now: number): number {
    if (this.byBucket) {
      const ordinal = this.#leaving(now)
      return this.#released(cells.unitsIn(ordinal), USUAL_RELEASE * limit, ordinal, this.shape.parts, now)
    }
    const ordinal = this.#groupOf(this.#edge(now))
    return this.#released(cells.unitsIn(ordinal), EARLY_RELEASE * limit, ordinal, this.shape.group, now)
  }

  /** The released part of units that begin to leave with the part `ordinal` and have left after `span` parts. */
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

  /** Units before the part `end`, if a whole sub-window leaves together and that of the part `oldest` is the leaving one. */
  whole({ cells, limit }: SlidingKey, now: number, oldest: Ordinal = this.#leaving(now), end: number = Number.POSITIVE_INFINITY): number {
    const { parts } = this.shape
    return cells.total(oldest, end) - this.#released(cells.total(oldest, oldest + parts), EARLY_RELEASE * limit, oldest, parts, now)
  }

  /** W at the last update, plus the units counted since. */
  known(slot: number, key: SlidingKey): number {
    return (this.#meter.table.fields[baseOf(slot) + KNOWN] as number) - key.early
  }

  /** Milliseconds by which the clock may be slow. */
  #margin(now: number): number {
    return Math.min(this.#meter.time.uncertainty(now), this.#meter.storePolicy.width * this.shape.parts * MOST_MARGIN)
  }

  /** Whether a key has no units left. */
  isIdle(slot: number): boolean {
    const key = this.#keys.get(slot)
    if (key === undefined) return true
    key.cells.dropBefore(this.oldest())
    return key.cells.empty
  }
}

/** Takes units into a cell, up to its usual number. Returns how many. */
function takeUsual(cells: SlidingCells, ordinal: Ordinal, most: number, units: number): number {
  const usual = Math.min(units, Math.max(0, Math.floor(most - (cells.find(ordinal)?.taken ?? 0))))
  if (usual > 0) cells.take(ordinal, usual)
  return usual
}
