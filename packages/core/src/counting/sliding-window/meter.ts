import type { Rejection } from '../../algorithms/meter.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { BLOCKED, baseOf, GATE, IN_FLIGHT, TOLD } from '../../keys/key-table.ts'
import { REFUND, RESEND } from '../../report/stats.ts'
import type { Cell, StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from '../../store/contract.ts'
import { sumOf } from '../../store/units.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { mostOthers } from '../estimate.ts'
import { GatedMeter, SETTLE } from '../gated-meter.ts'
import type { Exchange, ScanOptions } from '../site.ts'
import type { SlidingKey } from './key.ts'
import { measurePace } from './pace.ts'
import { SlidingRecords } from './records.ts'
import type { SlidingRule } from './rule.ts'
import type { WindowShape } from './wait.ts'

/** Sums of fractions differ by less than this part. */
const ROUNDING = 1e-9

/** Counts in the sub-windows of a sliding window, and their sync with the store. Its rule decides which requests are allowed. */
export class SlidingWindowMeter extends GatedMeter {
  override readonly surveyed: number = 5_000
  override readonly records: SlidingRecords
  readonly #rule: SlidingRule

  constructor(site: SharedSite, exchange: Exchange, shape: WindowShape, rule: (meter: SlidingWindowMeter) => SlidingRule) {
    const { id, interval, limit } = site.policy
    const storePolicy: StorePolicy = Object.freeze({
      id,
      width: interval / shape.subWindows / shape.parts,
      cells: (shape.subWindows + 1) * shape.parts,
      limit,
      hot: limit / 4,
      ttl: 2 * interval,
    })
    super(site, exchange, storePolicy, exchange.time, shape.group)
    this.records = new SlidingRecords(this, shape)
    this.#rule = rule(this)
  }

  protected override allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    return this.#rule.allowsSlowly(slot, cost, now, count)
  }

  /** Updates a key to this moment: books its counted units, opens it if it has capacity again, and computes W. */
  refresh(slot: number, now: number): SlidingKey {
    const key = this.records.at(slot)
    key.limit = this.site.limitOf(slot)
    this.records.absorb(slot, key, now)
    if (key.closed) this.#rule.reopen(key, now)
    this.records.update(slot, key, now)
    return key
  }

  override remaining(slot: number, now: number): number {
    const key = this.records.find(slot)
    if (key === undefined) return super.remaining(slot, now)
    return key.closed ? 0 : Math.max(0, this.site.limitOf(slot) - this.records.known(slot, key))
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    this.#rule.rejected(slot, cost, now)
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, cost: number, now: number): Rejection {
    return this.#rule.explain(slot, cost, now)
  }

  blockedRemotely(slot: number, now: number): void {
    this.#rule.blockedRemotely(slot, now)
  }

  override resetAfterMs(slot: number, now: number): number {
    const empty = this.records.emptyAt(slot)
    return empty === undefined ? 0 : Math.max(0, empty - this.time.at(now))
  }

  override refund(name: string, takenIn: Ordinal, units: number, now: number): void {
    const slot = this.table.find(name)
    if (slot < 0) return
    // Units that a clock that was ahead counted are in the running part now.
    const ordinal = Math.min(takenIn, this.ordinal) as Ordinal
    this.#giveBack(slot, this.refresh(slot, now), this.records.cellsOf(ordinal), units, now)
  }

  override refundNewest(slot: number, units: number, now: number): number {
    const key = this.refresh(slot, now)
    const newestFirst = [...key.cells].map(({ ordinal }) => ordinal).reverse()
    return this.#giveBack(slot, key, newestFirst, units, now)
  }

  #giveBack(slot: number, key: SlidingKey, ordinals: readonly Ordinal[], units: number, now: number): number {
    const wasFull = this.records.known(slot, key) + 1 > key.limit
    const back = key.cells.giveBack(ordinals, units)
    if (back === 0) return 0
    this.recheck(slot)
    this.refresh(slot, now)
    this.table.fields[baseOf(slot) + GATE] = Number.NEGATIVE_INFINITY
    if (wasFull) key.open()
    if (wasFull && !this.exchange.storeDown) this.wantExchange(slot, now, REFUND)
    return back
  }

  protected override toSend(slot: number, now: number): readonly Cell[] {
    const key = this.records.at(slot)
    this.records.absorb(slot, key, now)
    const cells = key.cells.toSend(key.resend)
    key.resent = key.resend
    key.resend = false
    // There is nothing to send, but the answer shows the units that others allowed during an outage.
    if (cells.length === 0 && key.capped) cells.push({ ordinal: this.ordinal, taken: 0, given: 0 })
    return cells
  }

  protected override learn(slot: number, { cells }: SyncEntry, result: SyncResult, _sent: number, now: number): void {
    const key = this.records.at(slot)
    if (key.sentAt >= this.exchange.storeUpAt + SETTLE) key.capped = false
    const before = key.cells.others()
    for (const { ordinal, taken, given } of cells) {
      const bucket = key.cells.find(ordinal)
      if (bucket === undefined) continue
      bucket.takenSent = Math.max(bucket.takenSent, taken)
      bucket.givenSent = Math.max(bucket.givenSent, given)
    }
    for (const cell of result.cells) this.#learn(key, cell, 0, !key.announcedInFlight)
    key.cells.changed()
    if (key.resend || (!key.resent && this.#isLost(key, cells, result.cells))) {
      key.resend = true
      this.wantExchange(slot, now, RESEND)
    }
    const learned = Math.max(0, key.cells.others() - before)
    measurePace(key, learned, this.records.total(key.cells, now), now)
    const own = key.ownTaken - key.cells.unsent()
    key.share.add(Math.max(0, own - key.ownThen), Math.max(0, own - key.ownThen) + learned, key.limit)
    key.ownThen = own
    key.syncedAt = now
    key.synced = true
    this.recheck(slot)
    this.refresh(slot, now)
    this.recheck(slot)
    this.#rule.lookAtNews(slot, key, now)
  }

  /** Whether all processes together have fewer units than the store has acknowledged of this one. */
  #isLost(key: SlidingKey, sent: readonly Cell[], totals: readonly Cell[]): boolean {
    const newest = (sent.at(-1) as Cell).ordinal
    let acknowledged = 0
    for (const { ordinal, takenSent } of key.cells)
      if (ordinal > newest - this.storePolicy.cells && ordinal <= newest) acknowledged += takenSent
    let total = 0
    for (const { taken } of totals) total += taken
    return total < acknowledged * (1 - ROUNDING)
  }

  /** Takes over a part's total: a lower bound of the others' units, and exact after a refund. */
  #learn(key: SlidingKey, cell: Cell, inFlight: number, exact: boolean): void {
    // A process whose clock is ahead may have begun the next cells. A cell that is further off is a mistake.
    if (cell.ordinal < this.records.oldest() || cell.ordinal > this.ordinal + this.storePolicy.cells) return
    const bucket = key.cells.at(cell.ordinal)
    const ownSent = bucket.takenSent - bucket.givenSent + inFlight
    const others = Math.min(mostOthers(this.policy.limit), Math.max(0, cell.taken - cell.given - ownSent))
    if (exact && cell.given > bucket.givenByAll) bucket.others = others
    // An announcement from before a refund that a reply has already contained would count refunded units as the others'.
    else if (exact || cell.given >= bucket.givenByAll) bucket.others = Math.max(bucket.others, others)
    bucket.givenByAll = Math.max(bucket.givenByAll, cell.given)
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    if (this.syncedBlocks.isOfBefore(announcement, now)) return
    const { cells, key: wireKey } = announcement
    const slot = this.site.locateId(wireKey)
    if (slot < 0) return
    const key = this.refresh(slot, now)
    if (key.cells.own() === 0 && (!key.synced || key.syncedAt < now - this.policy.interval)) key.hello = true
    key.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    const before = key.cells.others()
    const lost = cells.length === 0 && [...key.cells].some(({ takenSent }) => takenSent > 0)
    // If all processes together have fewer units than the store has acknowledged of this one, it has lost the key's counts.
    if (lost || cells.some(({ ordinal, taken }) => taken < (key.cells.find(ordinal)?.takenSent ?? 0))) {
      key.resend = true
      this.wantExchange(slot, now, RESEND)
    }
    for (const cell of cells) this.#learn(key, cell, key.cells.find(cell.ordinal)?.flight ?? 0, false)
    key.cells.changed()
    // If many processes join an attack together, only announcements show that this process's share has shrunk.
    const grown = key.cells.others() - before
    if (grown > 0) {
      key.share.add(0, grown, key.limit)
      // A process with few requests of its own may have no other way to measure the others' pace in time.
      measurePace(key, grown, this.records.total(key.cells, now), now)
      key.syncedAt = now
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    if (!this.exchange.storeDown && !key.away) this.#rule.lookAtNews(slot, key, now)
    this.recheck(slot)
  }

  protected override visit(slot: number, now: number, { all, resend }: ScanOptions): boolean {
    if (((this.table.flags[slot] as number) & BLOCKED) !== 0) this.blocks.of(slot, now)
    const flags = this.table.flags[slot] as number
    if (this.#isOver(slot) && (flags & (BLOCKED | IN_FLIGHT)) === 0) {
      if (this.records.isIdle(slot)) this.site.forget(slot)
      return false
    }
    const key = this.records.at(slot)
    if ((flags & IN_FLIGHT) !== 0) {
      // The running sync carries only new units, so the next one must carry all.
      if (resend) key.resend = true
      return false
    }
    if (this.exchange.storeDown) return false
    this.records.absorb(slot, key, now)
    if (resend) {
      key.cells.forgetSent()
      this.recheck(slot)
    }
    const unsent = key.cells.unsent()
    return key.resend || key.cells.givenUnsent() || (unsent > 0 && (all || !this.#quiet(key, unsent)))
  }

  /** Whether the window of the key's last units has ended. */
  #isOver(slot: number): boolean {
    return this.ordinal - this.ordinalOf(baseOf(slot)) > this.storePolicy.cells
  }

  protected override byOwn(slot: number, cost: number): boolean {
    const key = this.records.find(slot)
    return key === undefined || key.cells.others() === 0 || key.cells.own() + cost > this.site.limitOf(slot)
  }

  override usedOf(slot: number, now: number): number {
    const key = this.records.find(slot)
    return key === undefined ? 0 : sumOf(this.records.total(key.cells, now) - this.records.early(key, now), this.records.uncounted(slot))
  }

  override ownOf(slot: number): number {
    return sumOf(this.records.find(slot)?.cells.own() ?? 0, this.records.uncounted(slot))
  }

  override unsyncedOf(slot: number): number {
    return (this.records.find(slot)?.cells.unsent() ?? 0) + this.records.uncounted(slot)
  }

  override unsyncedSince(slot: number, now: number): number {
    const key = this.records.find(slot)
    if (key === undefined || (!this.exchange.storeDown && this.#quiet(key, this.unsyncedOf(slot)))) return now
    return Math.min(now, Math.max(now - this.policy.interval, key.syncedAt))
  }

  #quiet(key: SlidingKey, unsent: number): boolean {
    const { limit } = key
    const live = this.exchange.nodes
    if (this.keepsAll) return false
    return key.cells.own() * live < limit / 4 || unsent * live < limit * 0.1
  }

  protected override cleared(_key: string, slot: number): void {
    if (slot >= 0) this.records.forgotten(slot)
  }

  /** The store returns the whole window for any cell. */
  override usedIn(cells: readonly Cell[], now: number): number {
    return this.records.usedIn(cells, now)
  }

  protected override mayForget(slot: number): boolean {
    return (this.#isOver(slot) || this.isEmpty(slot)) && this.records.isIdle(slot)
  }
}
