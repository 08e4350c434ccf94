import { Paces } from '../../algorithms/bucket/paces.ts'
import { drained, ROUNDING } from '../../algorithms/bucket/step.ts'
import { drainTime } from '../../algorithms/drain-time.ts'
import type { Rejection } from '../../algorithms/meter.ts'
import type { BucketShape } from '../../algorithms/shape.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { BLOCKED, baseOf, DUE, GATE, IN_FLIGHT, KNOWN, TOLD } from '../../keys/key-table.ts'
import { PROOF, REFUND, RESEND } from '../../report/stats.ts'
import type { Cell, SyncEntry, SyncResult, TotalAnnouncement } from '../../store/contract.ts'
import { sumOf } from '../../store/units.ts'
import { type Ordinal, startOf } from '../../time/intervals.ts'
import type { Ticket } from '../batch.ts'
import { GatedMeter, SETTLE } from '../gated-meter.ts'
import type { ScanOptions, StoreExchange } from '../site.ts'
import { Alone } from './alone.ts'
import type { BucketKey } from './key.ts'
import { Levels } from './levels.ts'
import { freeAt, spreadOver } from './pace.ts'
import { BucketRecords } from './records.ts'
import { BucketReservations } from './reservations.ts'
import { StorePolicies } from './store-policies.ts'
import { Telling } from './telling.ts'

/** Intervals for which a store keeps a bucket that has drained. */
const KEPT = 2
/** Milliseconds by which a difference of times may be wrong. */
const ROUNDED = 1e-6

/**
 * A bucket that all processes fill. Each process rejects by a level that is never above the level of the units that were really allowed, so
 * it rejects no request by an estimate. Units allowed beyond the capacity, before the others' counts arrived, stay in the bucket and are
 * paid back.
 *
 * The level is the greater of two lower bounds. The first is the level from before, with the process's units since. The second is the
 * store's level, plus the level of a bucket with only the units that the store lacks. (Buckets are superadditive: two buckets that drain
 * separately never have more together than a bucket that gets the units of both.)
 */
export class BackgroundBucket extends GatedMeter {
  override readonly surveyed: number = 5_000
  override readonly records: BucketRecords
  readonly #levels: Levels
  readonly #paces: Paces
  readonly #telling: Telling
  readonly #policies: StorePolicies
  readonly #alone: Alone
  /** Absent if a debt may be forgotten, because times could then be reserved twice. */
  readonly reservations: BucketReservations | undefined
  readonly #earlyDrop: boolean
  readonly #random: () => number
  readonly #store: StoreExchange
  // The request path reads these. See `LocalBucket`.
  protected interval: number
  protected rate: number
  /** Units that fit into a bucket. Negative while some key has a limit of its own. */
  protected capacity: number

  constructor(site: SharedSite, exchange: StoreExchange, { maxDebt, earlyDrop = false }: BucketShape) {
    const { interval, limit } = site.policy
    const policies = new StorePolicies(site, maxDebt)
    super(site, exchange, policies.of(limit))
    this.#policies = policies
    this.#paces = new Paces(site)
    this.#levels = new Levels(site, this.#paces, interval, maxDebt)
    this.#alone = new Alone(site, exchange, this.#levels, this.#paces)
    this.records = new BucketRecords(this, this.#levels, this.#paces, policies, this.#alone, earlyDrop)
    this.#telling = new Telling(this, this.records, policies)
    this.reservations = maxDebt === undefined ? new BucketReservations(this, this.records, policies) : undefined
    this.#earlyDrop = earlyDrop
    this.#random = exchange.random
    this.#store = exchange
    this.interval = interval
    this.rate = limit
    this.capacity = site.limited ? -1 : site.most(limit)
  }

  get wakeAt(): number {
    return Number.POSITIVE_INFINITY
  }

  override adopt(now: number): void {
    const { limit } = this.policy
    this.#policies.forget()
    this.storePolicy = this.#policies.of(limit)
    this.rate = limit
    this.capacity = this.site.limited ? -1 : this.site.most(limit)
    this.invalidate(now, false)
  }

  override recheck(slot: number): void {
    this.#paces.recheck()
    this.capacity = this.site.limited ? -1 : this.site.most(this.rate)
    super.recheck(slot)
  }

  // The request path. In a record, `fields[base]` counts the units since the last slow check, `fields[base + 1]` how many need none.

  override take(slot: number, cost: number, now: number): number {
    const { fields } = this.table
    const base = slot * 5
    const counted = (fields[base] as number) + cost
    let level = (fields[base + 3] as number) - ((now - (fields[base + 4] as number)) * this.rate) / this.interval
    if (level < 0) level = 0
    level += cost
    if (!(counted < (fields[base + 1] as number) && level <= this.capacity && fields[base + 2] === this.tag)) return -1
    fields[base] = counted
    fields[base + 3] = level
    fields[base + 4] = now
    this.allowed += cost
    return this.remaining(slot, now)
  }

  override fits(slot: number, cost: number, now: number = 0): boolean {
    const { fields } = this.table
    const base = slot * 5
    const level = (fields[base + 3] as number) - ((now - (fields[base + 4] as number)) * this.rate) / this.interval
    return (
      (fields[base] as number) + cost < (fields[base + 1] as number) &&
      Math.max(level, 0) + cost <= this.capacity &&
      fields[base + 2] === this.tag
    )
  }

  override allows(slot: number, cost: number, now: number, count = true): boolean {
    return this.fits(slot, cost, now) || this.allowsSlowly(slot, cost, now, count)
  }

  /** Buckets open at any time, not only at the ends of cells. */
  override fullBy(): -1 {
    return -1
  }

  override add(slot: number, cost: number, now: number = 0): void {
    const { fields } = this.table
    const base = baseOf(slot)
    const level = this.#levels.at(slot, now)
    const units = this.#paces.filling(slot, cost, level)
    this.#levels.set(slot, level + units, now)
    fields[base + KNOWN] = sumOf(fields[base + KNOWN] as number, units)
    this.#paces.asked(slot, level)
    this.allowed += cost
  }

  override mark(slot: number): number {
    this.#levels.mark(slot)
    return this.table.fields[baseOf(slot) + KNOWN] as number
  }

  override untake(slot: number, mark: number, cost: number): void {
    super.untake(slot, mark, cost)
    this.#levels.restore(slot)
  }

  protected override allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    const key = this.records.refresh(slot, now)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    if (this.blocks.of(slot, now) !== undefined || limit === 0) return false
    const level = this.#levels.at(slot, now)
    const away = this.storeAway || key.away
    if (away) {
      if (count) key.awayAt = now
      if (!this.exchange.storeDown && count) this.wantExchange(slot, now, RESEND)
      if (this.policy.failMode === 'open') return true
      if (key.closed(limit, now)) return false
      return level + cost <= most + most * ROUNDING && this.#alone.allows(key, slot, cost, now, count)
    }
    if (key.closed(limit, now)) return false
    const idle = this.#telling.free(slot, key, now)
    if (level + cost > most + most * ROUNDING) {
      if (count && idle && level + 1 > most && key.cells.unsent() > 0) this.wantExchange(slot, now, PROOF)
      return false
    }
    if (key.guess !== undefined) {
      if (this.#alone.guess(key, slot, now) <= level) key.guess = undefined
      else {
        // Others may not have sent the units that they allowed meanwhile.
        if (count) this.wantExchange(slot, Math.max(now, this.exchange.storeUpAt + SETTLE), RESEND)
        return this.#alone.allows(key, slot, cost, now, count)
      }
    }
    if (!count) return true
    if (key.earlyDrop !== undefined && this.#isSoft(slot, key, level, now)) {
      const allowed = key.earlyDrop.allows(this.#expected(slot, key, level, now), this.records.shape(slot), this.#random())
      if (allowed) this.#telling.softly(slot, key, key.cells.unsent() + cost, now)
      return allowed
    }
    this.table.fields[baseOf(slot) + GATE] = Number.POSITIVE_INFINITY
    if (idle) this.#telling.countDown(slot, key, level, cost, now)
    else this.#telling.lookSoon(slot)
    return true
  }

  /** Whether requests are allowed at random, because more come than the limit's pace and the bucket is nearly full. */
  #isSoft(slot: number, key: BucketKey, level: number, now: number): boolean {
    const shape = this.records.shape(slot)
    if (shape.most < 4 * this.exchange.nodes || !(shape.drain < Number.POSITIVE_INFINITY)) return false
    return key.earlyDrop?.active(this.#expected(slot, key, level, now), shape, now) === true
  }

  /** The level with the units that others have probably allowed since it was received. */
  #expected(slot: number, key: BucketKey, level: number, now: number): number {
    const { drain } = this.records.shape(slot)
    return Math.max(level, key.forecast.bare(now, drain) + key.forecast.others(now, drain))
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    const key = this.#earlyDrop ? this.records.refresh(slot, now) : this.records.at(slot)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    const level = this.#levels.at(slot, now)
    if (this.site.limited) {
      this.#paces.asked(slot, level)
      this.#reopen(key, slot, now)
    }
    // Also without the store: confirmed counts stay valid.
    if (!key.closed(limit, now) && level + 1 > most + most * ROUNDING && limit > 0 && this.blocks.of(slot, now) === undefined) {
      this.#close(key, slot, level, now)
      const known = !this.storeAway && !key.away && key.guess === undefined
      if (known && this.policy.cooldown > 0 && now - key.awayAt >= drainTime(most, this.#paces.of(slot), this.interval)) {
        this.blocks.startCooldown(slot, now, key.closedUntil)
      }
    }
    if (key.earlyDrop !== undefined) {
      key.cells.reject(this.ordinal, cost, level, this.#policies.spans(this.#paces.of(slot)))
      if (key.earlyDrop.armed(now)) this.#telling.softly(slot, key, key.cells.unsent(), now)
    }
    return this.explain(slot, cost, now)
  }

  /** Rejects until a tenth of the bucket is free: otherwise each request at the limit would have to be sent to all processes. */
  #close(key: BucketKey, slot: number, level: number, now: number): void {
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    // A difference of times must not make a whole wait one millisecond longer.
    key.closedUntil = now + drainTime(level - most + freeAt(most, limit), this.#paces.of(slot), this.interval) - ROUNDED
    key.closedFor = limit
    key.forecast.close(key.closedUntil)
    key.earlyDrop?.arm(key.closedUntil, this.interval)
  }

  override explain(slot: number, cost: number, now: number): Rejection {
    const key = this.records.at(slot)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    const pace = this.#paces.of(slot)
    const units = Math.min(cost, most)
    const block = this.blocks.of(slot, now)
    if (block?.manual === true) return { reason: 'blocked', retryAfterMs: block.until - now }
    const byLevel = drainTime(this.#levels.at(slot, now) + units - most - (most * ROUNDING) / 2, pace, this.interval)
    if (this.storeAway || key.away || key.guess !== undefined)
      return { reason: 'storeDown', retryAfterMs: Math.max(byLevel, this.#alone.opensIn(key, slot, units, now)) }
    let retryAfterMs = key.closed(limit, now) ? Math.max(byLevel, key.closedUntil - now) : byLevel
    // Allowed at random: the time in which this process's part of the limit brings this many units.
    if (retryAfterMs <= 0 && key.earlyDrop?.armed(now))
      retryAfterMs = drainTime(units * spreadOver(key.share, this.nodes), pace, this.interval)
    return block === undefined
      ? { reason: 'limit', retryAfterMs }
      : { reason: 'cooldown', retryAfterMs: Math.max(block.until - now, retryAfterMs) }
  }

  override remaining(slot: number, now: number): number {
    const key = this.records.find(slot)
    if (key?.closed(this.site.limitOf(slot), now) === true) return 0
    return Math.max(0, this.records.most(slot) - this.#levels.at(slot, now))
  }

  override resetAfterMs(slot: number, now: number): number {
    return drainTime(this.#levels.at(slot, now), this.#paces.of(slot), this.interval)
  }

  override refund(name: string, takenIn: Ordinal, units: number, now: number): void {
    const slot = this.table.find(name)
    if (slot < 0) return
    const key = this.records.refresh(slot, now)
    const back = key.cells.giveBack(Math.min(takenIn, this.ordinal) as Ordinal, units)
    this.#fall(slot, key, back, now)
  }

  /** Returns the newest units. */
  lower(slot: number, key: BucketKey, units: number, now: number): number {
    const back = key.cells.giveBackLast(units)
    this.#fall(slot, key, back, now)
    return back
  }

  override refundNewest(slot: number, units: number, now: number): number {
    return this.lower(slot, this.records.refresh(slot, now), units, now)
  }

  #fall(slot: number, key: BucketKey, back: number, now: number): void {
    if (!(back > 0)) return
    const limit = this.site.limitOf(slot)
    const wasFull = key.closed(limit, now) || this.#levels.at(slot, now) + 1 > this.site.most(limit)
    this.#levels.set(slot, Math.max(0, this.#levels.at(slot, now) - back), now)
    key.forecast.add(-back)
    this.#reopen(key, slot, now)
    if (wasFull && !this.exchange.storeDown) this.wantExchange(slot, now, REFUND)
  }

  /** The level has fallen by more than draining: the key opens sooner. */
  #reopen(key: BucketKey, slot: number, now: number): void {
    if (!key.closed(this.site.limitOf(slot), now)) return
    const until = key.closedUntil
    this.#close(key, slot, this.#levels.at(slot, now), now)
    key.closedUntil = Math.min(until, key.closedUntil)
  }

  protected override toSend(slot: number, now: number): readonly Cell[] {
    return this.records.toSend(slot, this.records.refresh(slot, now), now)
  }

  protected override entryOf(slot: number, cells: readonly Cell[]): SyncEntry {
    return { ...super.entryOf(slot, cells), policy: this.records.policyOf(slot) }
  }

  protected override learn(slot: number, { cells }: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const key = this.records.refresh(slot, now)
    if (key.sentAt >= this.exchange.storeUpAt + SETTLE) key.guess = undefined
    if (key.tellsLevel) key.toldAt = sent
    key.tellsLevel = false
    const own = key.cells.acknowledge(cells)
    const [cell] = result.cells
    if (cell !== undefined) {
      const all = Math.max(own, cell.taken - key.heard)
      key.share.add(own, all, this.records.most(slot))
      if (!key.resent && this.records.isLost(key, cell)) this.#resend(slot, key, now)
      if (this.records.learn(slot, key, cell, now, { announced: false, exact: !key.announcedInFlight })) this.#reopen(key, slot, now)
      key.forecast.answered(cell.taken, own, sent)
      key.earlyDrop?.answered(cell.taken + (cell.rejected ?? 0), sent, this.records.shape(slot), now)
    }
    key.syncedAt = now
    key.answered(now - sent)
    this.#telling.lookAtNews(slot, key, now)
    this.reservations?.answered(slot, key, cell, sent, now)
  }

  protected override unanswered(slot: number, now: number): void {
    super.unanswered(slot, now)
    this.reservations?.failed(slot, this.records.at(slot), now)
  }

  override overdue(ticket: Ticket, now: number): void {
    if (typeof ticket !== 'number') return
    // The request may be lost, which shows only at its storeTimeout. So the next request sends again: units sent twice count once.
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~IN_FLIGHT
    super.overdue(ticket, now)
    // Requests that wait continue with the share.
    if (this.policy.failMode === 'share') this.site.freed(ticket)
  }

  override undue(slot: number): void {
    super.undue(slot)
    const key = this.records.find(slot)
    if (key !== undefined) this.reservations?.failed(slot, key, Math.max(this.begunAt, key.sentAt))
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    if (this.syncedBlocks.isOfBefore(announcement, now)) return
    const [cell] = announcement.cells
    const slot = this.site.locateId(announcement.key)
    if (slot < 0) return
    const key = this.records.refresh(slot, now)
    if (cell === undefined) {
      if (key.cells.acknowledged() > 0) this.#resend(slot, key, now)
      return
    }
    if (key.cells.own() === 0 && key.syncedAt < now - this.policy.interval) key.hello = true
    key.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    if (this.records.isLost(key, cell)) this.#resend(slot, key, now)
    // If many processes join an attack together, only announcements show that this process's share has shrunk.
    const grown = cell.taken - key.heard
    if (grown > 0) {
      if (key.syncedAt > Number.NEGATIVE_INFINITY) key.share.add(0, grown, this.records.most(slot))
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    if (this.records.learn(slot, key, cell, now, { announced: true, exact: false })) this.#reopen(key, slot, now)
    key.syncedAt = now
    if (!key.away) this.#telling.lookAtNews(slot, key, now)
  }

  /** The store has lost the counts of a key. */
  #resend(slot: number, key: BucketKey, now: number): void {
    key.resend = true
    key.tellsLevel = true
    this.wantExchange(slot, now, RESEND)
  }

  protected override visit(slot: number, now: number, { all, resend }: ScanOptions): boolean {
    const flags = this.table.flags[slot] as number
    const { storeDown } = this.exchange
    if ((flags & BLOCKED) !== 0) this.blocks.of(slot, now)
    if ((flags & IN_FLIGHT) !== 0) return false
    const key = this.records.refresh(slot, now)
    // If the loss was noticed before the heartbeat reported it, sending the level again would hide units that others allowed since.
    if (resend && now >= key.toldAt + this.#store.lifetime) {
      key.cells.forgetSent()
      key.tellsLevel = true
      key.heard = 0
      this.recheck(slot)
    }
    const unsent = key.cells.unsent()
    const tells = key.tellsLevel && this.#levels.at(slot, now) > 0
    const isNew = tells || key.cells.givenUnsent() || (unsent > 0 && (all || !this.#telling.quiet(slot, key, unsent, now, resend)))
    if (!storeDown && isNew) return true
    const keep = storeDown || key.away || key.guess !== undefined || now < this.exchange.storeUpAt + this.policy.interval
    const over = (this.ordinal - this.#policies.spans(this.#paces.of(slot)).span) as Ordinal
    key.cells.trim(over, keep)
    // A store keeps a drained bucket no longer. Units of an empty key are useless later, and keeping them would keep all keys in an
    // outage.
    if (this.#levels.at(slot, now) === 0) key.cells.trim((over - KEPT * this.storePolicy.cells) as Ordinal, false)
    if ((flags & (BLOCKED | DUE)) === 0 && this.mayForget(slot, now)) this.site.forget(slot)
    return false
  }

  protected override byOwn(slot: number, cost: number): boolean {
    const key = this.records.find(slot)
    return key === undefined || key.heard <= key.cells.acknowledged() || this.records.own(slot) + cost > this.records.most(slot)
  }

  override usedOf(slot: number, now: number): number {
    return this.#levels.at(slot, now)
  }

  override ownOf(slot: number): number {
    return this.records.own(slot)
  }

  override unsyncedOf(slot: number): number {
    return this.records.unsent(slot)
  }

  override unsyncedSince(slot: number, now: number): number {
    const key = this.records.find(slot)
    if (key === undefined || (!this.exchange.storeDown && this.#telling.quiet(slot, key, this.unsyncedOf(slot), now))) return now
    return Math.min(now, Math.max(now - this.policy.interval, key.syncedAt))
  }

  protected override cleared(_key: string, slot: number): void {
    const key = slot < 0 ? undefined : this.records.find(slot)
    if (key !== undefined) this.reservations?.failed(slot, key, this.begunAt)
    if (slot >= 0) this.records.forgotten(slot)
  }

  override usedIn([cell]: readonly Cell[], now: number): number {
    if (cell?.level === undefined) return 0
    const then = this.time.monotonicAt(startOf(cell.ordinal, this.storePolicy.width))
    return drained(cell.level, now - then, this.policy.limit, this.interval)
  }

  protected override mayForget(slot: number, now: number = this.rollAt): boolean {
    return this.records.idle(slot, now)
  }
}
