import { MOST_UNITS } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { mostTimes, ROUNDING } from './step.ts'
import { WeightedLog } from './weighted-log.ts'

/** Milliseconds by which a difference of times may be wrong. */
const ROUNDED = 1e-6
/** Times that fit into the first ring of a key. A power of 2, as all sizes of rings. */
const SMALLEST = 4

/**
 * Logs of this process alone: `SLIDING_LOG_STEP` for many keys. If a key's requests cost one unit each, only their times are kept. A key
 * with any other cost keeps the units too, in `weighted`, until its log is empty. For each key:
 *
 *     fields[slot * 2]      index of the oldest time in its ring
 *     fields[slot * 2 + 1]  times in its ring; 0 if `weighted` has its log
 *     rings[slot]           times, round and round
 */
export class LocalSlidingLog extends LocalMeter {
  // Not `#`: private names compile to more bytecode, and the request path reads these.
  protected readonly interval: number
  protected readonly rings: (number[] | undefined)[] = []
  /** From this time on `site` needs a newer millisecond. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY
  /** The last request that `take` counted, as long as nothing has changed since: `resetAfterMs` is usually called right after it. */
  protected lastSlot = -1
  protected lastAt = 0
  readonly #weighted = new Map<number, WeightedLog>()

  constructor(site: MeterSite) {
    super(site)
    // A request that returns after `retryAfterMs` must fit, though differences of times are rounded.
    this.interval = site.policy.interval - 2 * ROUNDED
  }

  protected override adoptLimit(): void {
    super.adoptLimit()
    this.lastSlot = -1
  }

  /** A request of one unit to a key whose ring is not full. A number replaces an imported constant, as in `GatedMeter`. */
  override take(slot: number, cost: number, now: number): number {
    const ring = this.rings[slot]
    if (ring === undefined || cost !== 1) return super.take(slot, cost, now)
    const { fields, flags } = this.site.table
    const { interval } = this
    const mask = ring.length - 1
    const base = slot * 2
    let head = fields[base] as number
    let size = fields[base + 1] as number
    while (size > 0 && now - (ring[head] as number) >= interval) {
      head = (head + 1) & mask
      size--
    }
    if (size > mask || !(size + 1 <= this.limit) || ((flags[slot] as number) & 4) !== 0) return super.take(slot, cost, now)
    ring[(head + size) & mask] = now
    fields[base] = head
    fields[base + 1] = size + 1
    this.lastSlot = slot
    this.lastAt = now
    this.allowed++
    if (now >= this.toldUntil) this.tell(now)
    return this.limit - size - 1
  }

  override resetAfterMs(slot: number, now: number): number {
    return slot === this.lastSlot && now === this.lastAt ? this.interval : this.#newestLeaves(slot, now)
  }

  #newestLeaves(slot: number, now: number): number {
    const used = this.#used(slot, now)
    if (used === 0) return 0
    return (this.#weightedAt(slot)?.newest ?? this.#timeAt(slot, used - 1)) + this.interval - now
  }

  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    return cost <= limit - this.#used(slot, now) + limit * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, limit: number, now: number): void {
    this.lastSlot = -1
    const used = this.#used(slot, now)
    if (cost === 1 && used < mostTimes(limit) && !this.#weighted.has(slot)) this.#push(slot, now)
    else this.#weightedOf(slot).push(now, Math.min(MOST_UNITS, cost), mostTimes(limit))
    if (now >= this.toldUntil) this.tell(now)
  }

  /** Needs no state: nothing was counted in between, so `restore` removes the newest. */
  override mark(): number {
    return 0
  }

  protected override restore(slot: number): void {
    this.lastSlot = -1
    const log = this.#weighted.get(slot)
    if (log !== undefined) log.undo()
    else this.fields[slot * 2 + 1] = (this.fields[slot * 2 + 1] as number) - 1
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#used(slot, now) - this.site.limitOf(slot))
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  /** Until enough of the oldest units have left. */
  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const used = this.#used(slot, now)
    if (used === 0) return 0
    const excess = used + cost - limit - (limit * ROUNDING) / 2
    const log = this.#weightedAt(slot)
    const leaves = log === undefined ? this.#timeAt(slot, Math.min(used, Math.max(1, Math.ceil(excess))) - 1) : log.leaves(excess)
    return leaves + this.interval + ROUNDED - now
  }

  protected override idle(slot: number, now: number): boolean {
    return this.#used(slot, now) === 0
  }

  /** @param takenAt the millisecond in which they were taken */
  protected override giveBack(slot: number, takenAt: Ordinal, units: number, _limit: number, now: number): void {
    if (this.#used(slot, now) > 0 && now - takenAt < this.interval) this.#takeOut(slot, takenAt, units)
  }

  override refundNewest(slot: number, units: number): number {
    this.#takeOut(slot, Number.NEGATIVE_INFINITY, units)
    return units
  }

  /** Takes out units of `takenAt` and later. */
  #takeOut(slot: number, takenAt: number, units: number): void {
    this.lastSlot = -1
    if (this.#weighted.has(slot) || !Number.isInteger(units)) {
      const log = this.#weightedOf(slot)
      log.giveBack(takenAt, units)
      if (log.size === 0) this.#weighted.delete(slot)
    } else this.#remove(slot, takenAt, units)
  }

  protected override cleared(slot: number): void {
    this.forgotten(slot)
  }

  override forgotten(slot: number): void {
    this.lastSlot = -1
    this.rings[slot] = undefined
    this.#weighted.delete(slot)
  }

  /** Passes the current millisecond to the site: a refund needs the time of its decision. */
  protected tell(now: number): void {
    const millisecond = Math.floor(now)
    this.toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  /** Units in the log. Units that left the interval are removed first. */
  #used(slot: number, now: number): number {
    const { fields } = this.site.table
    const size = fields[slot * 2 + 1] as number
    if (size === 0) return this.#weighted.size === 0 ? 0 : this.#usedOfWeighted(slot, now)
    return now - this.#timeAt(slot, 0) < this.interval ? size : this.#forget(slot, now)
  }

  /** Usually no key has a weighted log: then skip the look-up. */
  #weightedAt(slot: number): WeightedLog | undefined {
    return this.#weighted.size === 0 ? undefined : this.#weighted.get(slot)
  }

  #usedOfWeighted(slot: number, now: number): number {
    const log = this.#weighted.get(slot)
    if (log === undefined) return 0
    log.forget(now, this.interval)
    if (log.size === 0) this.#weighted.delete(slot)
    return log.used
  }

  /** Removes times that have left the interval. Returns how many remain. */
  #forget(slot: number, now: number): number {
    const { fields } = this
    const ring = this.rings[slot] as number[]
    let head = fields[slot * 2] as number
    let size = fields[slot * 2 + 1] as number
    while (size > 0 && now - (ring[head] as number) >= this.interval) {
      head = (head + 1) & (ring.length - 1)
      size--
    }
    fields[slot * 2] = head
    return (fields[slot * 2 + 1] = size)
  }

  /** The `place`th time of a ring, the oldest first. */
  #timeAt(slot: number, place: number): number {
    const ring = this.rings[slot] as number[]
    return ring[((this.fields[slot * 2] as number) + place) & (ring.length - 1)] as number
  }

  #push(slot: number, now: number): void {
    const { fields, rings } = this
    const size = fields[slot * 2 + 1] as number
    let ring = rings[slot]
    if (ring === undefined || size === ring.length) {
      // Filled with fractions, so that the array stores doubles from the start.
      const wider: number[] = new Array(Math.max(SMALLEST, 2 * size)).fill(0.5)
      for (let place = 0; place < size; place++) wider[place] = this.#timeAt(slot, place)
      while (rings.length < slot) rings.push(undefined)
      rings[slot] = ring = wider
      fields[slot * 2] = 0
    }
    ring[((fields[slot * 2] as number) + size) & (ring.length - 1)] = now
    fields[slot * 2 + 1] = size + 1
  }

  /** Removes this many times, from `takenAt` on. Refunded units are usually new, so only few times move. */
  #remove(slot: number, takenAt: number, units: number): void {
    const { fields } = this
    const ring = this.rings[slot] as number[]
    const head = fields[slot * 2] as number
    const size = fields[slot * 2 + 1] as number
    let first = size
    while (first > 0 && this.#timeAt(slot, first - 1) >= takenAt) first--
    const gone = Math.min(units, size - first)
    for (let place = first; place + gone < size; place++) {
      ring[(head + place) & (ring.length - 1)] = ring[(head + place + gone) & (ring.length - 1)] as number
    }
    fields[slot * 2 + 1] = size - gone
  }

  /** The log of a key whose requests cost any units. It takes over the times in the key's ring. */
  #weightedOf(slot: number): WeightedLog {
    const found = this.#weighted.get(slot)
    if (found !== undefined) return found
    const log = new WeightedLog()
    const size = this.fields[slot * 2 + 1] as number
    for (let place = 0; place < size; place++) log.push(this.#timeAt(slot, place), 1, Number.POSITIVE_INFINITY)
    this.#weighted.set(slot, log)
    this.rings[slot] = undefined
    this.fields[slot * 2 + 1] = 0
    return log
  }
}
