import { MOST_UNITS, sumOf } from '../../keys/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'
import type { MeterSite } from '../meter.ts'
import { mostTimes, ROUNDING } from './step.ts'

/** Numbers of a ring that has room for a few times. A power of 2, as all sizes of rings. */
const SMALLEST = 8

/**
 * Logs of this process alone: `SLIDING_LOG_STEP` of many keys. Of each key:
 *
 *     fields[slot * 3]      units in its log
 *     fields[slot * 3 + 1]  where the oldest time stands in its ring
 *     fields[slot * 3 + 2]  numbers in its ring, two for each time
 *     rings[slot]           time, units, time, units, … round and round
 */
export class LocalSlidingLog extends LocalMeter {
  // Not `#`: of a private name more bytecode is made, and these are read on the request path.
  protected readonly interval: number
  protected readonly rings: (number[] | undefined)[] = []
  /** The limit; less than 0 while some key has one of its own. */
  protected limit: number
  /** Numbers that a key keeps at most at that limit. */
  protected most: number
  /** Until when `site` need not be told the time. */
  protected toldUntil: number = Number.NEGATIVE_INFINITY
  /** For `untake`: units of the key before the last request that was counted, and whether that has a time of its own. */
  protected usedBefore = 0
  protected pushed = false
  /** Else it was added to the newest time, which was so before. */
  #timeBefore = 0
  #unitsBefore = 0
  /** Keys that were counted fractions, or more than can be added exactly: their sums must not be made by differences. */
  readonly #inexact = new Set<number>()

  constructor(site: MeterSite) {
    super(site)
    this.interval = site.policy.interval
    this.limit = site.policy.limit
    this.most = 2 * mostTimes(this.limit)
  }

  override adopt(now: number): void {
    this.recheck()
    super.adopt(now)
  }

  override recheck(): void {
    const { limited, policy } = this.site
    this.limit = limited ? -1 : policy.limit
    this.most = 2 * mostTimes(policy.limit)
  }

  /** A request of whole units that gets a time of its own; a number stands for an imported constant, as in `GatedMeter`. */
  override take(slot: number, cost: number, now: number): boolean {
    const { fields, flags } = this.site.table
    const ring = this.rings[slot]
    if (ring === undefined || cost !== Math.floor(cost)) return false
    const base = slot * 3
    const mask = ring.length - 1
    let used = fields[base] as number
    if (now - (ring[fields[base + 1] as number] as number) >= this.interval) used = this.forget(slot, now)
    const size = fields[base + 2] as number
    const place = ((fields[base + 1] as number) + size) & mask
    if (size === 0 || size > mask || size >= this.most || ring[(place - 2) & mask] === now) return false
    if (!(used + cost <= this.limit) || ((flags[slot] as number) & 4) !== 0) return false
    ring[place] = now
    ring[place + 1] = cost
    this.usedBefore = used
    this.pushed = true
    fields[base] = used + cost
    fields[base + 2] = size + 2
    this.admitted += cost
    if (now >= this.toldUntil) this.tell(now)
    return true
  }

  override remaining(slot: number, now: number): number {
    if (this.limit < 0) return this.left(slot, this.site.limitOf(slot), now)
    const left = this.limit - this.#used(slot, now)
    return Math.max(0, left)
  }

  protected override allows(slot: number, cost: number, limit: number, now: number): boolean {
    return cost <= limit - this.#used(slot, now) + limit * ROUNDING && limit > 0
  }

  protected override count(slot: number, cost: number, limit: number, now: number): void {
    const used = this.#used(slot, now)
    const { fields } = this
    const base = slot * 3
    const ring = this.#roomOf(slot)
    const size = fields[base + 2] as number
    const newest = ((fields[base + 1] as number) + size - 2) & (ring.length - 1)
    this.usedBefore = used
    this.pushed = size === 0 || (ring[newest] !== now && size < 2 * mostTimes(limit))
    if (this.pushed) {
      const place = (newest + 2) & (ring.length - 1)
      ring[place] = now
      ring[place + 1] = Math.min(MOST_UNITS, cost)
      fields[base + 2] = size + 2
    } else {
      this.#timeBefore = ring[newest] as number
      this.#unitsBefore = ring[newest + 1] as number
      ring[newest] = now
      ring[newest + 1] = sumOf(this.#unitsBefore, cost)
    }
    fields[base] = sumOf(used, cost)
    if (!Number.isInteger(cost) || fields[base] === MOST_UNITS) this.#inexact.add(slot)
    if (now >= this.toldUntil) this.tell(now)
  }

  /** Nothing has come between: what was counted last is undone. */
  override mark(): number {
    return 0
  }

  protected override restore(slot: number): void {
    const { fields } = this
    const base = slot * 3
    const ring = this.#ringOf(slot)
    fields[base] = this.usedBefore
    if (this.pushed) fields[base + 2] = (fields[base + 2] as number) - 2
    else {
      const newest = this.#place(slot, (fields[base + 2] as number) - 2)
      ring[newest] = this.#timeBefore
      ring[newest + 1] = this.#unitsBefore
    }
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  /** Until enough of the oldest units have left. */
  protected override wait(slot: number, cost: number, limit: number, now: number): number {
    const excess = this.#used(slot, now) + cost - limit - (limit * ROUNDING) / 2
    const ring = this.#ringOf(slot)
    const size = this.fields[slot * 3 + 2] as number
    let units = 0
    for (let at = 0; at < size; at += 2) {
      const place = this.#place(slot, at)
      units = sumOf(units, ring[place + 1] as number)
      if (units >= excess) return (ring[place] as number) + this.interval - now
    }
    return 0
  }

  override resetAfter(slot: number, now: number): number {
    this.#used(slot, now)
    const size = this.fields[slot * 3 + 2] as number
    return size === 0 ? 0 : (this.#ringOf(slot)[this.#place(slot, size - 2)] as number) + this.interval - now
  }

  protected override idle(slot: number, now: number): boolean {
    return this.#used(slot, now) === 0
  }

  /** @param takenAt the millisecond that they were taken in */
  protected override giveBack(slot: number, takenAt: Ordinal, units: number, _limit: number, now: number): void {
    this.#used(slot, now)
    if (now - takenAt >= this.interval) return
    const { fields } = this
    const base = slot * 3
    const ring = this.#ringOf(slot)
    const size = fields[base + 2] as number
    let left = units
    let kept = 0
    for (let at = 0; at < size; at += 2) {
      const place = this.#place(slot, at)
      const time = ring[place] as number
      const back = time >= takenAt ? Math.min(left, ring[place + 1] as number) : 0
      const rest = (ring[place + 1] as number) - back
      left -= back
      if (rest <= 0) continue
      const to = this.#place(slot, kept)
      ring[to] = time
      ring[to + 1] = rest
      kept += 2
    }
    fields[base + 2] = kept
    if (!Number.isInteger(units)) this.#inexact.add(slot)
    fields[base] = this.#sum(slot)
  }

  protected override cleared(slot: number): void {
    this.forgotten(slot)
  }

  override forgotten(slot: number): void {
    this.rings[slot] = undefined
    this.#inexact.delete(slot)
  }

  /** Has decisions know in which millisecond they were made: a refund must. */
  protected tell(now: number): void {
    const millisecond = Math.floor(now)
    this.toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  /** Units in the log, once what has left the interval is forgotten. */
  #used(slot: number, now: number): number {
    const { fields } = this
    const base = slot * 3
    if (fields[base + 2] === 0 || now - (this.#ringOf(slot)[fields[base + 1] as number] as number) < this.interval) {
      return fields[base] as number
    }
    return this.forget(slot, now)
  }

  /** Forgets what has left the interval; returns the units that are left. */
  protected forget(slot: number, now: number): number {
    const { fields } = this
    const base = slot * 3
    const ring = this.#ringOf(slot)
    let size = fields[base + 2] as number
    let head = fields[base + 1] as number
    let used = fields[base] as number
    while (size > 0 && now - (ring[head] as number) >= this.interval) {
      used -= ring[head + 1] as number
      head = (head + 2) & (ring.length - 1)
      size -= 2
    }
    fields[base + 1] = head
    fields[base + 2] = size
    if (size === 0) this.#inexact.delete(slot)
    return (fields[base] = size === 0 ? 0 : this.#inexact.has(slot) ? this.#sum(slot) : used)
  }

  #sum(slot: number): number {
    const ring = this.#ringOf(slot)
    const size = this.fields[slot * 3 + 2] as number
    let units = 0
    for (let at = 0; at < size; at += 2) units = sumOf(units, ring[this.#place(slot, at) + 1] as number)
    return units
  }

  /** Where in its ring a number of the log stands. */
  #place(slot: number, at: number): number {
    return ((this.fields[slot * 3 + 1] as number) + at) & (this.#ringOf(slot).length - 1)
  }

  #ringOf(slot: number): number[] {
    return this.rings[slot] ?? NO_RING
  }

  /** The ring with room for one more time. */
  #roomOf(slot: number): number[] {
    const ring = this.#ringOf(slot)
    const { fields } = this
    const size = fields[slot * 3 + 2] as number
    if (size < ring.length) return ring
    const wider: number[] = new Array(Math.max(SMALLEST, 2 * ring.length)).fill(0)
    for (let at = 0; at < size; at++) wider[at] = ring[this.#place(slot, at)] as number
    while (this.rings.length < slot) this.rings.push(undefined)
    this.rings[slot] = wider
    fields[slot * 3 + 1] = 0
    return wider
  }
}

const NO_RING: number[] = []
