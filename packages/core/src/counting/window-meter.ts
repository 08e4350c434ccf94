import type { Rejection } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import { BLOCKED, baseOf, GATE, IN_FLIGHT, KNOWN, OTHERS, SENT, TAG, TOLD } from '../keys/key-table.ts'
import { REFUND, RESEND, SPAN_END } from '../report/stats.ts'
import type { Cell, StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from '../store/contract.ts'
import { sumOf } from '../store/units.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Batch, Ticket } from './batch.ts'
import { GatedMeter } from './gated-meter.ts'
import type { Exchange, ScanOptions } from './site.ts'
import { IDLE_INTERVALS, WindowRecords } from './window-records.ts'
import type { PastCount, WindowRule } from './window-rule.ts'

/** Counts per interval of the epoch, and their sync with the store. Its rule decides which requests are allowed. */
export class WindowMeter extends GatedMeter {
  override readonly jitter: boolean
  override readonly records: WindowRecords
  // Not `#`: the request path reads it.
  protected readonly rule: WindowRule

  /**
   * @param published counts are synced only at the ends of spans, as the algorithm was published: by this process's own clock, without a
   * delay and without announcements
   */
  constructor(site: SharedSite, exchange: Exchange, rule: (meter: WindowMeter) => WindowRule, published: boolean) {
    const { id, interval, limit } = site.policy
    const hot = published ? Number.POSITIVE_INFINITY : limit / 4
    const storePolicy: StorePolicy = Object.freeze({ id, width: interval, cells: 1, limit, hot, ttl: 2 * interval })
    super(site, exchange, storePolicy, published ? exchange.localTime : exchange.time)
    this.jitter = !published
    this.records = new WindowRecords(this, () => this.rule)
    this.rule = rule(this)
  }

  override remaining(slot: number, now: number): number {
    const left = this.rule.most(slot, now) - (this.table.fields[slot * 5] as number)
    // On the request path, where `Math.max` is bytecode too much.
    if (left < 0) return 0
    return left
  }

  override resetAfterMs(slot: number, now: number): number {
    const end = this.rollAt - now
    return this.rule.emptyAfter?.(slot, end) ?? end
  }

  protected override allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    if (this.table.fields[baseOf(slot) + TAG] !== this.tag) this.refresh(slot, now)
    return this.rule.allowsSlowly(slot, cost, now, count)
  }

  /** Brings a record to the running interval. */
  refresh(slot: number, now: number): void {
    this.records.refresh(slot, Math.min(now, this.begunAt))
  }

  override refund(key: string, takenIn: Ordinal, units: number, now: number): void {
    // Units that a clock that was ahead counted are in the running interval now.
    const ordinal = Math.min(takenIn, this.ordinal) as Ordinal
    const slot = this.table.find(key)
    if (slot >= 0) {
      const base = baseOf(slot)
      if (this.ordinalOf(base) > this.ordinal) this.refresh(slot, now)
      if (this.ordinalOf(base) === ordinal) {
        const back = Math.min(units, this.records.own(base))
        if (!(back > 0)) return
        const fields = this.table.fields
        const wasFull = (fields[base + KNOWN] as number) + 1 > this.site.limitOf(slot)
        this.records.give(slot, back)
        fields[base + KNOWN] = (fields[base + KNOWN] as number) - back
        if ((fields[base + GATE] as number) < 0) fields[base + GATE] = Number.NEGATIVE_INFINITY
        // Others reject this key because of units that are free again, so sync it soon.
        if (wasFull && !this.exchange.storeDown) this.wantExchange(slot, now, REFUND)
        return
      }
    }
    this.records.late.refund(key, ordinal, units)
  }

  protected override toSend(slot: number, _now: number, due: boolean): readonly Cell[] {
    const base = baseOf(slot)
    const ordinal = this.ordinalOf(base)
    if (due && ordinal !== this.ordinal) return []
    const active = this.records.find(slot)
    const given = active?.given ?? 0
    const own = this.records.own(base)
    if (active !== undefined) active.flight = own - ((this.table.fields[base + SENT] as number) - active.givenSent)
    return [{ ordinal, taken: sumOf(own, given), given }]
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    if (typeof ticket === 'number') super.settle(ticket, entry, result, sent, now)
    else if (ticket.kind !== 'late') return
    else if (this.syncedBlocks.wasReset(entry, result, now)) this.records.late.finish(ticket, this.ordinal)
    else {
      this.records.late.settle(ticket, entry.cells[0] as Cell, this.ordinal)
      this.#settledLate(ticket, result)
    }
  }

  protected override learn(slot: number, entry: SyncEntry, result: SyncResult, _sent: number, now: number): void {
    const base = baseOf(slot)
    const cell = entry.cells[0] as Cell
    if (this.ordinalOf(base) === cell.ordinal) this.rule.merge(slot, base, cell, result.cells[0] as Cell, now)
    else {
      // The record has left the reply's interval in the meantime.
      const key = this.site.keyOf(slot)
      const late = this.records.late.find(key, cell.ordinal)
      if (late !== undefined && late.taken === cell.taken && late.given === cell.given) this.records.late.finish(late, this.ordinal)
      this.#settledLate({ ...cell, key }, result)
    }
  }

  #settledLate(count: PastCount, { cells: [total] }: SyncResult): void {
    if (total !== undefined) this.rule.settledLate?.(count, total.taken - total.given)
  }

  override fail(ticket: Ticket, entry: SyncEntry, now: number, alone = false): void {
    super.fail(ticket, entry, now, alone)
    if (typeof ticket === 'number') this.rule.spanUnsent?.(ticket, baseOf(ticket), now)
    else if (ticket.kind === 'late') this.records.late.again(ticket)
  }

  /** Whether a key is decided without the store. */
  decidesAlone(slot: number): boolean {
    return this.storeAway || this.records.find(slot)?.away === true
  }

  override scan(from: number, now: number, batch: Batch, options: ScanOptions): number {
    return from === 0 && !this.#scanLate(batch, now) ? 0 : super.scan(from, now, batch, options)
  }

  protected override visit(slot: number, now: number, { all, resend }: ScanOptions): boolean {
    const { records, rule } = this
    const flags = this.table.flags[slot] as number
    const base = baseOf(slot)
    if (this.ordinalOf(base) > this.ordinal) this.refresh(slot, now)
    const ordinal = this.ordinalOf(base)
    if (this.ordinal - ordinal >= IDLE_INTERVALS) {
      if ((flags & (BLOCKED | IN_FLIGHT)) === 0) {
        if (ordinal > 0) records.leave(slot, base, ordinal)
        this.site.forget(slot)
      } else if ((flags & BLOCKED) !== 0) this.blocks.of(slot, now)
      return false
    }
    // A key write in flight carries all units of its key, so it also restores units that the store has lost.
    if ((flags & IN_FLIGHT) !== 0) return false
    if (this.exchange.storeDown) {
      rule.spanUnsent?.(slot, base, now)
      return false
    }
    const active = records.find(slot)
    if (resend) {
      // The store has lost its counts.
      this.table.fields[base + SENT] = 0
      if (active !== undefined) active.givenSent = 0
      this.recheck(slot)
    }
    const unsent = records.unsent(slot, base)
    return (active !== undefined && active.given > active.givenSent) || (unsent > 0 && (all || !rule.quiet(slot, base, unsent)))
  }

  /** Sends the counts of ended intervals. Returns false if not all fit. */
  #scanLate(batch: Batch, now: number): boolean {
    const { late } = this.records
    late.prune(this.records.oldestLate)
    if (this.exchange.storeDown) return true
    this.walkedAt = now
    while (!batch.full) {
      const next = late.take()
      if (next === undefined) return !late.waiting
      this.stats.countExchange(SPAN_END)
      const { wireKey: key, ordinal, taken, given } = next
      batch.add(this, next, this.syncedBlocks.entryOf(key, [{ ordinal, taken, given }]))
    }
    return false
  }

  protected override mayForget(slot: number): boolean {
    if (this.isEmpty(slot)) return true
    const base = baseOf(slot)
    const ordinal = this.ordinalOf(base)
    if (this.ordinal - ordinal <= this.rule.remembers) return false
    this.records.leave(slot, base, ordinal)
    return true
  }

  protected override cleared(key: string, slot: number): void {
    if (slot >= 0) this.records.find(slot)?.clear()
    this.records.late.forget(key)
  }

  tillEnd(now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    this.rule.rejected(slot, cost, now)
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, cost: number, now: number): Rejection {
    const block = this.blocks.of(slot, now)
    if (block?.manual === true) return { reason: 'blocked', retryAfterMs: block.until - now }
    const alone = this.decidesAlone(slot)
    const opensIn = this.rule.opensIn?.(slot, cost, now) ?? this.tillEnd(now)
    const fits = this.knownOf(slot) + cost <= this.rule.most(slot, now)
    if (block === undefined) {
      // After an outage the key keeps to its share for a moment, although the limit is not reached.
      const capped = fits && this.records.find(slot)?.capped
      return { reason: alone || capped ? 'storeDown' : 'limit', retryAfterMs: opensIn }
    }
    // A cooldown may end while the interval still has no capacity.
    return { reason: 'cooldown', retryAfterMs: Math.max(block.until - now, alone || fits ? 0 : opensIn) }
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    this.rule.announced?.(announcement, now)
  }

  /** Takes over an announced total: a lower bound of the others' units. */
  hear(announcement: TotalAnnouncement, now: number): void {
    const cell = announcement.cells[0]
    if ((cell && cell.ordinal !== this.ordinal) || this.syncedBlocks.isOfBefore(announcement, now)) return
    const slot = this.site.locateId(announcement.key)
    if (slot < 0) return
    const base = baseOf(slot)
    if (this.ordinalOf(base) !== this.ordinal) this.refresh(slot, now)
    if (cell === undefined) {
      if (this.wasExchanged(slot)) this.wantExchange(slot, now, RESEND)
      return
    }
    const active = this.records.at(slot)
    if (this.records.own(base) === 0 && active.total === 0) active.hello = true
    active.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    // An announcement from before a refund that a reply has already contained: it would count refunded units as the others'.
    const late = cell.given < active.givenByAll
    active.givenByAll = Math.max(active.givenByAll, cell.given)
    // The announced total may contain own units up to those in flight. Without them it is a lower bound of the others' units.
    const ownSent = (this.table.fields[base + SENT] as number) - active.givenSent + active.flight
    const others = cell.taken - cell.given - Math.max(0, ownSent)
    if (!late && others > (this.table.fields[base + OTHERS] as number)) {
      this.records.setOthers(base, others)
      // The first processes to send their counts get few of the others', and don't sync again once a key is full.
      active.share.hear(cell.taken - cell.given, this.site.limitOf(slot))
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    // All processes together have fewer units than the store has acknowledged of this one, so it has lost the key's counts. An old
    // announcement causes only one sync too many.
    if (cell.taken < (this.table.fields[base + SENT] as number)) this.wantExchange(slot, now, RESEND)
    this.recheck(slot)
  }

  protected override byOwn(slot: number, cost: number): boolean {
    return this.rule.byOwn(slot, cost)
  }

  /** Known units of the running interval. */
  knownOf(slot: number): number {
    const base = baseOf(slot)
    return this.ordinalOf(base) === this.ordinal ? (this.table.fields[base + KNOWN] as number) : 0
  }

  override usedOf(slot: number, now: number): number {
    const base = baseOf(slot)
    const known = this.table.fields[base + KNOWN] as number
    const age = this.ordinal - this.ordinalOf(base)
    if (age === 0) return this.rule.used?.(slot, known, now) ?? known
    return age === 1 ? (this.rule.usedBefore?.(known, now) ?? 0) : 0
  }

  override askedCells(): Cell[] {
    const asked = super.askedCells()
    return this.rule.usedBefore === undefined ? asked : [{ ordinal: (this.ordinal - 1) as Ordinal, taken: 0, given: 0 }, ...asked]
  }

  override usedIn(cells: readonly Cell[], now: number): number {
    const before = cells.find(({ ordinal }) => ordinal === this.ordinal - 1)
    const left = before === undefined ? 0 : (this.rule.usedBefore?.(before.taken - before.given, now) ?? 0)
    return super.usedIn(cells, now) + left
  }

  override ownOf(slot: number): number {
    const base = baseOf(slot)
    return this.ordinalOf(base) < this.ordinal ? 0 : this.records.own(base)
  }

  override wasExchanged(slot: number): boolean {
    return (this.table.fields[baseOf(slot) + SENT] as number) > 0
  }

  /** At the start of an interval, no process has counted in it. */
  override heardAt(slot: number): number {
    return Math.max(this.begunAt, super.heardAt(slot))
  }

  override shareOf(slot: number): number {
    return this.records.find(slot)?.share.value(this.nodes) ?? super.shareOf(slot)
  }

  override unsyncedOf(slot: number): number {
    return this.records.unsent(slot, baseOf(slot))
  }

  override unsyncedSince(slot: number, now: number): number {
    const base = baseOf(slot)
    if (!this.exchange.storeDown && this.rule.quiet(slot, base, this.unsyncedOf(slot))) return now
    const { begunAt } = this
    const synced = this.records.find(slot)?.syncedAt ?? (this.wasExchanged(slot) ? this.walkedAt : begunAt)
    return Math.min(now, Math.max(begunAt, synced))
  }
}
