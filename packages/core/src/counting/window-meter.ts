import type { Rejection } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import { BLOCKED, baseOf, GATE, IN_FLIGHT, KNOWN, OTHERS, SENT, TAG, TOLD } from '../keys/key-table.ts'
import { CLOSE, REFUND, RESEND, type SourceIndex, SPAN_END } from '../report/stats.ts'
import type { Cell, StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from '../store/contract.ts'
import { sumOf } from '../store/units.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Batch, Ticket } from './batch.ts'
import { GatedMeter } from './gated-meter.ts'
import type { Exchange, ScanOptions } from './site.ts'
import { IDLE_INTERVALS, WindowRecords } from './window-records.ts'
import type { WindowRule } from './window-rule.ts'

/** Slots that one step of a scan visits, so that a step takes about a millisecond. */
const SCAN_STEP = 20_000

/** Counts per interval of the epoch, and their sync with the store. Its rule decides which requests are allowed. */
export class WindowMeter extends GatedMeter {
  override readonly jitter: boolean
  readonly records: WindowRecords
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

  protected override sentAt(slot: number): number {
    return this.records.activate(slot).sentAt
  }

  protected override sendDue(slot: number, now: number, batch: Batch): void {
    const base = baseOf(slot)
    const ordinal = this.ordinalOf(base)
    if (ordinal === this.ordinal) this.#send(slot, base, ordinal, now, batch)
  }

  #send(slot: number, base: number, ordinal: Ordinal, now: number, batch: Batch): void {
    const active = this.records.activeOf(slot)
    const given = active?.given ?? 0
    const own = this.records.own(base)
    active?.exchange(now, own - ((this.table.fields[base + SENT] as number) - active.givenSent))
    this.table.flags[slot] = (this.table.flags[slot] as number) | IN_FLIGHT
    batch.add(this, slot, this.syncedBlocks.entryOf(this.site.idOf(slot), [{ ordinal, taken: sumOf(own, given), given }]))
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const cell = entry.cells[0]
    const reply = result.cells[0]
    if (cell === undefined || reply === undefined) this.fail(ticket, entry, now)
    else if (typeof ticket !== 'number') {
      if (ticket.kind === 'late' && this.syncedBlocks.wasReset(entry, result, now)) this.records.late.finish(ticket, this.ordinal)
      else this.#settleLate(ticket, cell, reply)
    } else {
      this.#settled(ticket)
      if (this.syncedBlocks.wasReset(entry, result, now)) this.recheck(ticket)
      else if (this.ordinalOf(baseOf(ticket)) === cell.ordinal) this.rule.merge(ticket, baseOf(ticket), cell, reply, now)
      else this.#acknowledgeLate(ticket, cell, reply)
      this.syncedBlocks.replied(ticket, result, sent, now)
    }
  }

  #settled(slot: number): void {
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~(IN_FLIGHT | TOLD)
    const active = this.records.activeOf(slot)
    if (active?.away !== true) return
    active.away = false
    active.awayIn = this.ordinal
  }

  #settleLate(late: Ticket, cell: Cell, reply: Cell): void {
    if (typeof late === 'number' || late.kind !== 'late') return
    this.records.late.settle(late, cell, this.ordinal)
    this.rule.settledLate?.(late, reply.taken - reply.given)
  }

  /** The reply is about an interval that the record has left in the meantime. */
  #acknowledgeLate(slot: number, { ordinal, taken, given }: Cell, reply: Cell): void {
    const key = this.site.keyOf(slot)
    const late = this.records.late.find(key, ordinal)
    if (late !== undefined && late.taken === taken && late.given === given) this.records.late.finish(late, this.ordinal)
    this.rule.settledLate?.({ key, ordinal, taken, given }, reply.taken - reply.given)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    if (typeof ticket !== 'number') {
      if (ticket.kind === 'late') this.records.late.again(ticket)
      return
    }
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~IN_FLIGHT
    const active = this.records.activeOf(ticket)
    if (active !== undefined) active.flight = 0
    if (alone) this.#partAway(ticket, now)
    this.recheck(ticket)
    this.rule.spanUnsent?.(ticket, baseOf(ticket), now)
  }

  /** Whether a key is decided without the store. */
  decidesAlone(slot: number): boolean {
    return this.storeAway || this.records.activeOf(slot)?.away === true
  }

  #partAway(slot: number, now: number): void {
    const active = this.records.activate(slot)
    active.away = true
    active.awayIn = this.ordinal
    this.retryAlone(slot, now)
  }

  lost(slot: number): void {
    this.table.fields[baseOf(slot) + SENT] = 0
    const active = this.records.activeOf(slot)
    if (active !== undefined) active.givenSent = 0
    this.recheck(slot)
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    const { exchange, records, rule, table } = this
    if (from === 0 && !this.#scanLate(batch, now)) return 0
    const end = Math.min(table.end, from + SCAN_STEP)
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined) continue
      const flags = table.flags[slot] as number
      const base = baseOf(slot)
      if (this.ordinalOf(base) > this.ordinal) this.refresh(slot, now)
      const ordinal = this.ordinalOf(base)
      if (ordinal < this.ordinal - 1) {
        if (this.ordinal - ordinal >= IDLE_INTERVALS && (flags & (BLOCKED | IN_FLIGHT)) === 0) {
          if (ordinal > 0) records.leave(slot, base, ordinal)
          this.site.forget(slot)
        } else if ((flags & BLOCKED) !== 0) this.blocks.of(slot, now)
        continue
      }
      // An entry in flight carries all units of its key, so it also restores those that the store has lost.
      if ((flags & IN_FLIGHT) !== 0) continue
      if (exchange.storeDown) {
        rule.spanUnsent?.(slot, base, now)
        continue
      }
      if (resend) this.lost(slot)
      const unsent = records.unsent(slot, base)
      const active = records.activeOf(slot)
      const unsentGiven = active === undefined ? 0 : active.given - active.givenSent
      if (unsentGiven > 0 || (unsent > 0 && (all || !rule.quiet(slot, base, unsent)))) {
        this.stats.countExchange(resend ? RESEND : all ? CLOSE : SPAN_END)
        this.#send(slot, base, ordinal, now, batch)
      }
    }
    return end >= table.end ? -1 : end
  }

  /** Sends the counts of ended intervals; false if not all fit. */
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

  override forgotten(slot: number): void {
    this.records.forgotten(slot)
  }

  protected override cleared(key: string, slot: number): void {
    if (slot >= 0) this.records.activeOf(slot)?.clear()
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
    const opensIn = alone && this.policy.failMode === 'closed' ? this.tillEnd(now) : this.rule.opensIn(slot, cost, now)
    // After an outage the key keeps to its share for a moment, although the limit is not reached.
    const capped = this.records.activeOf(slot)?.capped === true && this.knownOf(slot) + cost <= this.rule.most(slot, now)
    if (block === undefined) return { reason: alone || capped ? 'storeDown' : 'limit', retryAfterMs: opensIn }
    // A cooldown may end while the interval still has no capacity.
    const full = !alone && this.knownOf(slot) + cost > this.rule.most(slot, now)
    return { reason: 'cooldown', retryAfterMs: Math.max(block.until - now, full ? opensIn : 0) }
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    this.rule.announced?.(announcement, now)
  }

  override overdue(ticket: Ticket): void {
    if (typeof ticket === 'number') this.rule.overdue?.(ticket)
  }

  /** Takes over an announced total: a lower bound of the others' units. */
  hear(announcement: TotalAnnouncement, now: number): void {
    if (now >= this.rollAt) this.roll(now)
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
    const active = this.records.activate(slot)
    if (this.records.own(base) === 0 && active.total === 0) active.hello = true
    active.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    active.givenByAll = Math.max(active.givenByAll, cell.given)
    // The announced total may contain own units up to those in flight. Without them it is a lower bound of the others' units.
    const ownSent = (this.table.fields[base + SENT] as number) - active.givenSent + active.flight
    const others = cell.taken - cell.given - Math.max(0, ownSent)
    if (others > (this.table.fields[base + OTHERS] as number)) {
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

  protected override knownBy(slot: number, cost: number): SourceIndex {
    return this.rule.knownBy(slot, cost)
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
    if (age === 0) return this.rule.used(slot, known, now)
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
    return Math.max(this.begunAt, this.records.activeOf(slot)?.syncedAt ?? this.begunAt)
  }

  override shareOf(slot: number): number {
    return this.records.activeOf(slot)?.share.value(this.nodes) ?? super.shareOf(slot)
  }

  protected override flightOf(slot: number): number {
    return this.records.activeOf(slot)?.flight ?? 0
  }

  override unsyncedOf(slot: number): number {
    return this.records.unsent(slot, baseOf(slot))
  }

  override unsyncedSince(slot: number, now: number): number {
    const base = baseOf(slot)
    if (!this.exchange.storeDown && this.rule.quiet(slot, base, this.unsyncedOf(slot))) return now
    const { begunAt } = this
    const synced = this.records.activeOf(slot)?.syncedAt ?? (this.wasExchanged(slot) ? this.walkedAt : begunAt)
    return Math.min(now, Math.max(begunAt, synced))
  }
}
