import { ACTIVE, BLOCKED, baseOf, GATE, IN_FLIGHT, KNOWN, OTHERS, SENT, STRIDE, TAG, TOLD } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { MOST_UNITS, sumOf } from '../../keys/units.ts'
import { ANNOUNCED, CLOSE, GLOBAL, LOCAL, REFUND, RESEND, type SourceIndex, SPAN_END } from '../../report/stats.ts'
import type { StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from '../../store/contract.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { StoreTime } from '../../time/store-time.ts'
import type { Refusal } from '../meter.ts'
import { Active } from '../shared/active-key.ts'
import type { Batch, Ticket } from '../shared/batch.ts'
import { GatedMeter, mostOthers } from '../shared/gated-meter.ts'
import { type LateCount, LateCounts } from '../shared/late-counts.ts'
import type { Exchange, ScanOptions, SharedSite } from '../shared/site.ts'

/** Slots that one step of a scan looks at, so that a step takes about a millisecond. */
const SCAN_STEP = 20_000
/** Idle intervals after which a key is forgotten: what it taught (share, rate) is of use for one interval more. */
const IDLE_INTERVALS = 2
/** Counts of short intervals are kept for so many milliseconds: an event loop may have been held for seconds. */
const KEEP_LATE = 10_000

/** What fixed windows have in common when their counts are exchanged, however that is done: counts per interval of the epoch. */
export abstract class FixedWindowMeter extends GatedMeter {
  readonly actives: SlotMap<Active> = new SlotMap()
  readonly late: LateCounts = new LateCounts()

  /** @param announce whether the other nodes are to be told of a key that becomes hot */
  constructor(site: SharedSite, exchange: Exchange, time: StoreTime = exchange.time, announce = true) {
    const { id, interval, limit } = site.policy
    const storePolicy: StorePolicy = Object.freeze({
      id,
      width: interval,
      cells: 1,
      limit,
      hot: announce ? limit / 4 : Number.POSITIVE_INFINITY,
      ttl: 2 * interval,
    })
    super(site, exchange, storePolicy, time)
  }

  /** Own net units of the interval that the record is of. */
  protected own(base: number): number {
    const fields = this.table.fields
    // After refunds of fractions, rounding may make the difference a little too small.
    return Math.max(0, (fields[base + KNOWN] as number) - (fields[base + OTHERS] as number))
  }

  /** Own units taken in the interval that the record is of; what was refunded is not subtracted. */
  protected taken(slot: number, base: number): number {
    return sumOf(this.own(base), this.activeOf(slot)?.given ?? 0)
  }

  /** Own units taken that the store has not acknowledged; those in flight included. */
  protected unsent(slot: number, base: number): number {
    return this.taken(slot, base) - (this.table.fields[base + SENT] as number)
  }

  activeOf(slot: number): Active | undefined {
    return ((this.table.flags[slot] as number) & ACTIVE) === 0 ? undefined : this.actives.get(slot)
  }

  activate(slot: number): Active {
    let active = this.activeOf(slot)
    if (active === undefined) {
      active = new Active()
      // What is under way was not noted for a key without side state; at most all that is not acknowledged.
      if (((this.table.flags[slot] as number) & IN_FLIGHT) !== 0) {
        const base = baseOf(slot)
        active.flight = this.own(base) - (this.table.fields[base + SENT] as number)
      }
      this.actives.set(slot, active)
      this.table.flags[slot] = (this.table.flags[slot] as number) | ACTIVE
    }
    return active
  }

  /** Brings a record to the running interval. What it held and nobody knows yet is kept, to be sent with its ordinal. */
  protected refresh(slot: number, now: number): void {
    const base = baseOf(slot)
    const fields = this.table.fields
    const before = this.ordinalOf(base)
    if (before > this.ordinal) {
      // These units were counted by a clock that was ahead (see `adoptTime`): they count now.
      fields[base + KNOWN] = this.own(base)
      fields[base + OTHERS] = 0
    } else if (before < this.ordinal) {
      if (before > 0) this.leave(slot, base, before)
      fields[base + KNOWN] = 0
      fields[base + OTHERS] = 0
      fields[base + SENT] = 0
      const active = this.activeOf(slot)
      active?.nextInterval(Math.min(now, this.rollAt - this.policy.interval))
    }
    if (before !== this.ordinal && this.late.has(this.ordinal)) this.#countAgain(slot, base)
    // The key may have been full of units that no longer count.
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    fields[base + TAG] = this.tag
  }

  /** Takes back late counts of an interval that is not over after all: a clock was ahead. */
  #countAgain(slot: number, base: number): void {
    const late = this.late.remove(this.site.keyOf(slot), this.ordinal)
    if (late === undefined) return
    const index = base + KNOWN
    this.table.fields[index] = sumOf(this.table.fields[index] as number, late.taken - late.given)
    if (late.given > 0) this.#give(slot, late.given)
  }

  /** The interval of a record is over. */
  protected leave(slot: number, base: number, ordinal: Ordinal): void {
    const taken = this.taken(slot, base)
    const active = this.activeOf(slot)
    const given = active?.given ?? 0
    const unsent = this.unsent(slot, base)
    if (!this.exchange.connected) return
    if ((unsent > 0 && !this.quiet(slot, base, unsent)) || given > (active?.givenSent ?? 0)) {
      this.late.add(this.site.keyOf(slot), this.site.idOf(slot), ordinal, taken, given)
    }
  }

  /** Whether a span's end may skip a key, since too little of it is unsent to matter. */
  protected abstract quiet(slot: number, base: number, unsent: number): boolean

  override refund(key: string, takenIn: Ordinal, units: number, now: number): void {
    // Units that were counted by a clock that was ahead count in the running interval now.
    const ordinal = Math.min(takenIn, this.ordinal) as Ordinal
    const slot = this.table.find(key)
    if (slot >= 0) {
      const base = baseOf(slot)
      if (this.ordinalOf(base) > this.ordinal) this.refresh(slot, now)
      if (this.ordinalOf(base) === ordinal) {
        const back = Math.min(units, this.own(base))
        if (!(back > 0)) return
        const fields = this.table.fields
        const wasFull = (fields[base + KNOWN] as number) + 1 > this.site.limitOf(slot)
        this.#give(slot, back)
        fields[base + KNOWN] = (fields[base + KNOWN] as number) - back
        if ((fields[base + GATE] as number) < 0) fields[base + GATE] = Number.NEGATIVE_INFINITY
        // Others refuse this key because of units that are free again: tell them soon.
        if (wasFull && this.exchange.connected && !this.exchange.degraded) this.wantExchange(slot, now, REFUND)
        return
      }
    }
    // The interval is over. As long as its counts have not been sent, they can still be corrected.
    const late = this.late.find(key, ordinal)
    if (late !== undefined && !late.done) late.given = Math.min(late.taken, late.given + units)
  }

  #give(slot: number, units: number): void {
    const active = this.activate(slot)
    active.given = sumOf(active.given, units)
  }

  protected override sentAt(slot: number): number {
    return this.activate(slot).sentAt
  }

  protected override sendDue(slot: number, now: number, batch: Batch): void {
    const base = baseOf(slot)
    const ordinal = this.ordinalOf(base)
    if (ordinal === this.ordinal) this.send(slot, base, ordinal, now, batch)
  }

  protected send(slot: number, base: number, ordinal: Ordinal, now: number, batch: Batch): void {
    const active = this.activeOf(slot)
    const given = active?.given ?? 0
    const own = this.own(base)
    active?.exchange(now, own - ((this.table.fields[base + SENT] as number) - active.givenSent))
    this.table.flags[slot] = (this.table.flags[slot] as number) | IN_FLIGHT
    batch.add(this, slot, this.entryOf(this.site.idOf(slot), [{ ordinal, taken: sumOf(own, given), given }]))
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const cell = entry.cells[0]
    const reply = result.cells[0]
    if (cell === undefined || reply === undefined) {
      this.fail(ticket, entry, now)
      return
    }
    if (typeof ticket !== 'number') {
      if (ticket.kind === 'reservation') return
      if (this.wasReset(entry, result, now)) {
        this.late.finish(ticket, this.ordinal)
        return
      }
      if (ticket.taken === cell.taken && ticket.given === cell.given) this.late.finish(ticket, this.ordinal)
      else this.late.again(ticket)
      this.settledLate(ticket, reply.taken - reply.given)
      return
    }
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~(IN_FLIGHT | TOLD)
    const base = baseOf(ticket)
    const active = this.activeOf(ticket)
    if (active?.away === true) {
      active.away = false
      active.awayIn = this.ordinal
    }
    if (this.wasReset(entry, result, now)) this.recheck(ticket)
    else if (this.ordinalOf(base) === cell.ordinal) this.merge(ticket, base, cell, reply, sent, now)
    else this.#acknowledgeLate(ticket, cell, reply)
    if (result.blocked > 0) this.blockRemotely(ticket, result.blocked, now, result.manual === true, now - sent)
  }

  /** The reply is of an interval that the record has left in the meantime. */
  #acknowledgeLate(slot: number, cell: SyncEntry['cells'][number], reply: SyncEntry['cells'][number]): void {
    const late = this.late.find(this.site.keyOf(slot), cell.ordinal)
    if (late !== undefined && late.taken === cell.taken && late.given === cell.given) this.late.finish(late, this.ordinal)
    this.settledLate({ key: this.site.keyOf(slot), ordinal: cell.ordinal, taken: cell.taken, given: cell.given }, reply.taken - reply.given)
  }

  /** The final total of an interval that is over became known. */
  protected settledLate(_late: Pick<LateCount, 'key' | 'ordinal' | 'taken' | 'given'>, _total: number): void {}

  /** Takes the cluster's total of the running interval over. */
  protected abstract merge(
    slot: number,
    base: number,
    cell: SyncEntry['cells'][number],
    reply: SyncEntry['cells'][number],
    sent: number,
    now: number,
  ): void

  /** A span ended and its counts could not be sent. */
  protected spanUnsent(_slot: number, _base: number, _now: number): void {}

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    if (typeof ticket !== 'number') {
      if (ticket.kind === 'late') this.late.again(ticket)
      return
    }
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~IN_FLIGHT
    const active = this.activeOf(ticket)
    if (active !== undefined) active.flight = 0
    if (alone) this.#partAway(ticket, now)
    this.recheck(ticket)
    this.spanUnsent(ticket, baseOf(ticket), now)
  }

  /** Whether a key is decided without the store. */
  protected decidesAlone(slot: number): boolean {
    return this.storeAway || this.activeOf(slot)?.away === true
  }

  #partAway(slot: number, now: number): void {
    const active = this.activate(slot)
    active.away = true
    active.awayIn = this.ordinal
    this.retryAlone(slot, now)
  }

  protected override lost(slot: number): void {
    this.table.fields[baseOf(slot) + SENT] = 0
    const active = this.activeOf(slot)
    if (active !== undefined) active.givenSent = 0
    this.recheck(slot)
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    if (from === 0 && this.exchange.connected) {
      if (!this.exchange.degraded) this.walkedAt = now
      const keep = Math.max(IDLE_INTERVALS, Math.ceil(KEEP_LATE / this.policy.interval))
      this.late.prune((this.ordinal - keep) as Ordinal)
    }
    if (from === 0 && this.exchange.connected && !this.exchange.degraded) {
      for (;;) {
        if (batch.full) return 0
        const late = this.late.take()
        if (late === undefined) break
        this.stats.countExchange(SPAN_END)
        const { wireKey: key, ordinal, taken, given } = late
        batch.add(this, late, this.entryOf(key, [{ ordinal, taken, given }]))
      }
    }
    const { table } = this
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
          if (ordinal > 0) this.leave(slot, base, ordinal)
          this.site.forget(slot)
        } else if ((flags & BLOCKED) !== 0) this.blockOf(slot, now)
        continue
      }
      if (!this.exchange.connected || (flags & IN_FLIGHT) !== 0) continue
      if (this.exchange.degraded) {
        this.spanUnsent(slot, base, now)
        continue
      }
      if (resend) this.lost(slot)
      const unsent = this.unsent(slot, base)
      const active = this.activeOf(slot)
      const unsentGiven = active === undefined ? 0 : active.given - active.givenSent
      if (unsentGiven > 0 || (unsent > 0 && (all || !this.quiet(slot, base, unsent)))) {
        this.stats.countExchange(resend ? RESEND : all ? CLOSE : SPAN_END)
        this.send(slot, base, ordinal, now, batch)
      }
    }
    return end >= table.end ? -1 : end
  }

  protected override mayForget(slot: number): boolean {
    const base = baseOf(slot)
    const ordinal = this.ordinalOf(base)
    if (ordinal === this.ordinal) return false
    this.leave(slot, base, ordinal)
    return true
  }

  override forgotten(slot: number): void {
    this.actives.delete(slot)
  }

  protected override cleared(key: string, slot: number): void {
    if (slot >= 0) this.activeOf(slot)?.clear()
    this.late.forget(key)
  }

  /** Tells a closed key from one at which a request is refused alone, since it costs more than what is left. */
  protected closedFor(base: number, cost: number): boolean {
    return cost <= 1 || (this.table.fields[base + KNOWN] as number) + 1 > this.site.limitOf(base / STRIDE)
  }

  protected tillEnd(now: number): number {
    return Math.max(0, this.rollAt - now)
  }

  override explain(slot: number, _cost: number, now: number): Refusal {
    const block = this.blockOf(slot, now)
    if (block !== undefined) return { reason: block.manual ? 'blocked' : 'cooldown', retryAfter: block.until - now }
    return { reason: this.decidesAlone(slot) ? 'degraded' : 'limit', retryAfter: this.tillEnd(now) }
  }

  /** The exchange of totals that were announced: a lower bound of what the others have taken. */
  override announced(announcement: TotalAnnouncement, now: number): void {
    const cell = announcement.cells[0]
    if (cell === undefined) return
    if (now >= this.rollAt) this.roll(now)
    if (cell.ordinal !== this.ordinal || this.isOfBefore(announcement, now)) return
    const slot = this.site.locateId(announcement.key)
    if (slot < 0) return
    const base = baseOf(slot)
    if (this.ordinalOf(base) !== this.ordinal) this.refresh(slot, now)
    const active = this.activate(slot)
    if (this.own(base) === 0 && active.total === 0) active.hello = true
    active.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    active.givenByAll = Math.max(active.givenByAll, cell.given)
    // The announced total may hold own units up to those in flight; without them it is what others have at least.
    const ownSent = (this.table.fields[base + SENT] as number) - active.givenSent + active.flight
    const others = cell.taken - cell.given - Math.max(0, ownSent)
    if (others > (this.table.fields[base + OTHERS] as number)) {
      this.setOthers(base, others)
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    // All nodes together have less than the store has acknowledged of this one: it has lost the key's counts. What an old
    // announcement would make of it is one exchange too many.
    if (cell.taken < (this.table.fields[base + SENT] as number)) this.wantExchange(slot, now, RESEND)
    this.recheck(slot)
  }

  protected override knownBy(slot: number, cost: number): SourceIndex {
    if (this.own(baseOf(slot)) + cost > this.site.limitOf(slot)) return LOCAL
    return ((this.table.flags[slot] as number) & TOLD) === 0 ? GLOBAL : ANNOUNCED
  }

  override usedOf(slot: number, _now: number): number {
    const base = baseOf(slot)
    return this.ordinalOf(base) === this.ordinal ? (this.table.fields[base + KNOWN] as number) : 0
  }

  override ownOf(slot: number): number {
    return this.own(baseOf(slot))
  }

  override wasExchanged(slot: number): boolean {
    return (this.table.fields[baseOf(slot) + SENT] as number) > 0
  }

  override unsyncedOf(slot: number): number {
    if (!this.exchange.connected) return 0
    const base = baseOf(slot)
    return this.unsent(slot, base)
  }

  override unsyncedSince(slot: number, now: number): number {
    const base = baseOf(slot)
    if (!this.exchange.degraded && this.quiet(slot, base, this.unsyncedOf(slot))) return now
    const begin = this.rollAt - this.policy.interval
    const synced = this.activeOf(slot)?.syncedAt ?? (this.wasExchanged(slot) ? this.walkedAt : begin)
    return Math.min(now, Math.max(begin, synced))
  }

  protected raiseOthers(base: number, others: number): void {
    const fields = this.table.fields
    if (others > (fields[base + OTHERS] as number)) this.setOthers(base, others)
  }

  protected setOthers(base: number, told: number): void {
    const fields = this.table.fields
    const others = Math.min(told, mostOthers(this.policy.limit))
    const own = this.own(base)
    const counted = Math.min(others, MOST_UNITS - own)
    fields[base + OTHERS] = counted
    fields[base + KNOWN] = counted + own
    fields[base + GATE] = Number.NEGATIVE_INFINITY
  }
}
