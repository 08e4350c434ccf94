import { type Rejection, type Reservation, type Reserving, UNDECIDED } from '../../../algorithms/meter.ts'
import type { SharedSite } from '../../../algorithms/site.ts'
import { BLOCKED, DUE, IN_FLIGHT } from '../../../keys/key-table.ts'
import { Slices } from '../../../keys/slices.ts'
import { CLOSE, COUNTDOWN, GLOBAL, LEASE, RESEND, type SourceIndex, SPAN_END } from '../../../report/stats.ts'
import type { Cell, SyncEntry, SyncResult } from '../../../store/contract.ts'
import type { LeaseAsk, LeaseNotice } from '../../../store/leases/ask.ts'
import { servesLease } from '../../../store/leases/grant.ts'
import { askFor, hearReply, hearReset, heldOf, type Lease, newLease, surrender, takeLease } from '../../../store/leases/lease.ts'
import { intervalOf } from '../../../time/calendar.ts'
import { endOf, type Ordinal, ordinalAt, startOf } from '../../../time/intervals.ts'
import type { Batch, Ticket } from '../../batch.ts'
import { GatedMeter } from '../../gated-meter.ts'
import { type Answered, askedBy, Leasing, LOST_TIME, newIncarnation } from '../../leasing.ts'
import type { ScanOptions, StoreExchange } from '../../site.ts'
import { KeyLeases } from './key-leases.ts'

/** Slots that one step of a scan visits, so that a step takes about a millisecond. */
const SCAN_STEP = 20_000
/** Idle intervals after which a key is removed. */
const IDLE_INTERVALS = 2
/** After this part of the interval, or this many milliseconds if that is sooner, a store that had no units for a key is tried again. */
const EMPTY_PART = 1 / 20
const EMPTY_MOST = 1_000
/** More units are requested when the remaining ones last for this many round trips and milliseconds. */
const LOW_ROUND_TRIPS = 2
const LOW_TIME = 2
/** Spans before the last one within which the next interval's quota may be requested: clocks differ a little. */
const EARLY = 1.25

/**
 * Fixed windows with quota taken ahead: a request is allowed immediately as long as the process has units of its key, and otherwise waits
 * for the store. The protocol is in `store/leases`. This class decides when to request units, and how many.
 */
export class LeaseMeter extends GatedMeter implements Reserving {
  override readonly jitter: boolean = true
  readonly #store: StoreExchange
  readonly #leasing: Leasing<KeyLeases>
  readonly #keys: (KeyLeases | undefined)[]
  /** How often the rule has changed, or the clock was set back. A key takes over the last change when it is next used or visited. */
  #changes = 0
  readonly #slices: Slices
  #incarnation = newIncarnation()

  constructor(site: SharedSite, exchange: StoreExchange) {
    const { id, interval, limit } = site.policy
    super(site, exchange, { id, width: interval, cells: 1, limit, hot: Number.POSITIVE_INFINITY, ttl: 2 * interval })
    this.#store = exchange
    this.#leasing = new Leasing(this, exchange)
    this.#keys = this.#leasing.keys
    this.#slices = new Slices(site.table, exchange.defer, (slot) => this.#changed(slot, this.#keys[slot]))
  }

  get reserving(): Reserving {
    return this
  }

  heldOf(slot: number): number {
    const key = this.#keys[slot]
    if (key === undefined) return 0
    const { current, next } = key
    const now = current.ordinal < this.ordinal ? 0 : Math.max(0, heldOf(current))
    return now + (next === undefined || next.ordinal < this.ordinal ? 0 : Math.max(0, heldOf(next)))
  }

  override take(slot: number, cost: number, now: number): number {
    const key = this.#keys[slot]
    if (key === undefined || ((this.table.flags[slot] as number) & BLOCKED) !== 0) return UNDECIDED
    if (!this.#within(slot, key, cost, this.site.limitOf(slot)) || !takeLease(key.current, cost, now)) return UNDECIDED
    this.allowed += cost
    if (heldOf(key.current) <= key.low) this.#runsLow(slot, key, now)
    return this.remaining(slot)
  }

  override fits(slot: number, cost: number, now: number = Number.NaN): boolean {
    const key = this.#keys[slot]
    if (key === undefined || ((this.table.flags[slot] as number) & BLOCKED) !== 0) return false
    const { current } = key
    if (!this.#within(slot, key, cost, this.site.limitOf(slot))) return false
    return heldOf(current) >= cost && now >= current.from && now < current.until
  }

  /** Whether a request stays within its limit if units were taken ahead by a higher one. */
  #within(slot: number, key: KeyLeases, cost: number, limit: number): boolean {
    return limit >= key.askedBy || this.usedOf(slot) + cost <= limit
  }

  override fullBy(): SourceIndex | -1 {
    return -1
  }

  override allows(slot: number, cost: number, now: number, count = true): boolean {
    if (this.blockOf(slot, now) !== undefined) return false
    const key = this.#keyOf(slot, now)
    if (this.fits(slot, cost, now)) return true
    if (this.storeAway) return this.#leasing.allowsAlone(slot, key, key.current.taken - key.current.given, cost)
    const { dryRun } = this.policy
    if (dryRun && count) this.#leasing.want(slot, now)
    // With `dryRun` no request waits, so it counts beyond the lease; and a preview shows the store's remaining units.
    return (dryRun || !count) && heldOf(key.current) + key.current.free >= cost
  }

  override add(slot: number, cost: number, now: number = Number.NaN): void {
    const key = this.#keyOf(slot, Number.isNaN(now) ? this.begunAt : now)
    key.current.taken += cost
    this.allowed += cost
    if (heldOf(key.current) <= key.low) this.#leasing.want(slot, now)
  }

  override mark(slot: number): number {
    return this.#keys[slot]?.current.taken ?? 0
  }

  override untake(slot: number, mark: number, cost: number): void {
    const key = this.#keys[slot]
    if (key !== undefined) key.current.taken = mark
    this.allowed -= cost
  }

  // Waiting requests.

  needsStore(slot: number, cost: number, now: number): boolean {
    const limit = this.site.limitOf(slot)
    if (this.storeAway || cost > limit || this.blockOf(slot, now) !== undefined) return false
    const key = this.#keyOf(slot, now)
    // Waiting requests already get all units there are: then no other one has to wait, however many come.
    return (now >= key.emptyUntil || cost < key.emptyFor) && !this.fits(slot, cost, now) && key.waiting.units + cost <= limit
  }

  reserve(reservation: Reservation, now: number): void {
    this.#leasing.wait(this.#keyOf(reservation.slot, now), reservation, now)
  }

  // Sending, and the answers.

  override collect(slot: number, now: number, batch: Batch): void {
    const { flags, keys } = this.table
    flags[slot] = (flags[slot] as number) & ~DUE
    if (keys[slot] === undefined) return
    const key = this.#keyOf(slot, now)
    this.#serve(slot, key, now)
    if (!this.#leasing.maySend(slot, key, now)) return
    // Timers and clocks round.
    if (key.waiting.first !== undefined && now < key.recallUntil - 1) {
      this.#leasing.want(slot, key.recallUntil)
      return
    }
    this.#send(slot, key, key.current, now, batch)
  }

  #send(slot: number, key: KeyLeases, lease: Lease, now: number, batch: Batch, leaving = false): void {
    key.measure(now, this.policy.interval)
    const first = lease === key.current ? key.waiting.first : undefined
    const units = first === undefined ? 0 : key.waiting.units
    const limit = first?.limit ?? this.site.limitOf(slot)
    const returning = lease.tail && heldOf(lease) > units
    if (returning) surrender(lease, units)
    const left = this.time.monotonicAt(endOf(lease.ordinal, this.policy.interval)) - now
    const ahead = leaving ? 0 : key.ahead(lease, lease === key.next ? this.policy.interval : left, this.nodes, limit)
    const few = ahead > heldOf(lease) && heldOf(lease) <= key.low
    if (lease === key.current && units === 0 && !few && !key.report && !returning) return
    this.#leasing.send(
      slot,
      key,
      lease,
      { first: first?.cost ?? 0, waiting: units, ahead, ...this.#terms(limit, lease.ordinal) },
      now,
      batch,
    )
    this.stats.countExchange(units > 0 ? LEASE : COUNTDOWN)
  }

  #terms(limit: number, ordinal: Ordinal): Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
    const { interval, spans } = this.policy
    // A store assumes that intervals of a calendar begin later than they do.
    const ahead = startOf(ordinal, interval) - intervalOf(ordinal, this.policy).start
    return { limit, nodes: this.nodes, early: (EARLY * interval) / spans + ahead, lifetime: this.#store.lifetime }
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const answered = this.#leasing.answered(ticket, entry, result, sent, now)
    if (answered === undefined) return
    const { slot, key, lease, ask, reply } = answered
    const { interval, calendar } = this.policy
    hearReply(lease, ask, reply, sent, now, interval, calendar)
    if (reply.epoch > this.site.resetAt(entry.key)) this.hearReset(entry.key, reply.epoch, now)
    const { end } = intervalOf(lease.ordinal, this.policy)
    const served = servesLease(ask, reply.now, interval) && reply.now < end
    if (lease !== key.current) {
      if (lease === key.next && !served) key.next = undefined
      // While this request was in flight, none was sent for the current interval.
      this.#goOn(slot, key, now)
      return
    }
    key.heardUsed(ask, now)
    key.low = Number.isNaN(key.pace) ? 0 : key.pace * (LOW_ROUND_TRIPS * key.roundTrip + LOW_TIME)
    this.#serve(slot, key, now)
    if (served) this.#rejectUnmet(answered, now)
    // The process's clock was behind: the next interval runs. No reply may move a key further.
    else if (reply.now >= end) {
      const running = calendar?.at(reply.now).ordinal ?? ordinalAt(reply.now, interval)
      this.#moveKey(slot, key, Math.min(running, this.ordinal + 1) as Ordinal, now)
    }
    // The process's clock was ahead. Once the clock is corrected, the key follows.
    else this.#keyOf(slot, now)
    this.#goOn(slot, key, now)
  }

  /** Rejects requests that the store has no units for. */
  #rejectUnmet({ slot, key, ask, reply, end }: Answered<KeyLeases>, now: number): void {
    const { current, waiting } = key
    // The lease may start only in a moment.
    if (end === 0 || now < current.from) return
    const { first } = waiting
    const mayHave = first !== undefined && askedBy(ask, first.limit) && first.limit - current.used >= first.cost
    if (mayHave && reply.quiet === 0 && waiting.begin >= key.recalled) {
      // Others have unused units, and are called on to return them.
      key.recalled = waiting.end
      key.letOthers(now)
      return
    }
    const pause = Math.min(EMPTY_MOST, this.policy.interval * EMPTY_PART)
    const held = heldOf(current)
    const limit = this.site.limitOf(slot)
    for (const request of waiting.takeUnmet(end, (each) => this.#isUnmet(slot, key, each, held, ask))) {
      // Later requests may have a higher limit, and so more units.
      if (request.cost <= 1 && request.limit >= limit) {
        key.emptyFor = request.cost
        key.emptyUntil = request.limit - current.used < request.cost ? current.until : now + pause
      }
      request.answer(false, current.ordinal)
    }
  }

  #isUnmet(slot: number, key: KeyLeases, { cost, limit }: Reservation, held: number, ask: LeaseAsk): boolean {
    return !this.#within(slot, key, cost, limit) || (cost > held && askedBy(ask, limit))
  }

  #serve(slot: number, key: KeyLeases, now: number): void {
    const { current } = key
    const take = ({ cost, limit }: Reservation) => {
      if (!this.#within(slot, key, cost, limit) || !takeLease(current, cost, now)) return false
      this.allowed += cost
      return true
    }
    this.#leasing.serve(slot, key, now, take, current.ordinal)
  }

  /** Sends the next request or report after an answer, if one is needed. */
  #goOn(slot: number, key: KeyLeases, now: number): void {
    const { current } = key
    if (key.waiting.first !== undefined)
      this.#leasing.want(slot, current.granted > 0 ? Math.max(now, Math.min(current.from, now + LOST_TIME)) : now)
    else if (key.report || (current.tail && heldOf(current) > 0)) this.#leasing.want(slot, now)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    const failed = this.#leasing.failed(ticket, now, alone)
    if (failed?.lease.heard === 0 && failed.lease === failed.key.next) failed.key.next = undefined
  }

  override undue(slot: number): void {
    super.undue(slot)
    this.#leasing.giveUp(slot)
  }

  /** An announcement of the store to all processes. */
  heardLease({ key: id, ordinal, free, tail, lost }: LeaseNotice, now: number): void {
    const slot = this.site.findId(id)
    if (slot < 0 || this.#keys[slot] === undefined) return
    const key = this.#keyOf(slot, now)
    const lease = key.current.ordinal === ordinal ? key.current : key.next?.ordinal === ordinal ? key.next : undefined
    if (lease === undefined) return
    if (!lost) {
      lease.free = free
      lease.tail = tail
      if (free >= 1) key.emptyUntil = Number.NEGATIVE_INFINITY
    }
    if (lease !== key.current) return
    const { first } = key.waiting
    if (first !== undefined && free >= first.cost) {
      key.recallUntil = Number.NEGATIVE_INFINITY
      this.#leasing.want(slot, now)
    }
    if (lost || (tail && key.unsaid)) key.report = true
    if (key.report || (tail && heldOf(lease) > 0)) this.#leasing.want(slot, now)
  }

  // Keys and time.

  #keyOf(slot: number, now: number): KeyLeases {
    let key = this.#keys[slot]
    if (key?.changes !== this.#changes) this.#changed(slot, key)
    if (key === undefined) {
      key = new KeyLeases(newLease(this.ordinal, this.#incarnation, this.site.limitOf(slot)), now)
      key.changes = this.#changes
      this.#keys[slot] = key
    } else if (key.current.ordinal < this.ordinal && now >= key.current.until) this.#moveKey(slot, key, this.ordinal, now)
    else if (key.next !== undefined && now >= key.next.from) this.#moveKey(slot, key, key.next.ordinal, now)
    return key
  }

  #moveKey(slot: number, key: KeyLeases, ordinal: Ordinal, now: number): void {
    if (ordinal > key.current.ordinal) key.moveTo(ordinal, this.#incarnation, this.site.limitOf(slot), now, this.policy.interval)
  }

  #runsLow(slot: number, key: KeyLeases, now: number): void {
    if (key.current.tail || now < key.emptyUntil) return
    this.#leasing.want(slot, now)
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    const { table, exchange, ordinal, policy } = this
    const end = Math.min(table.end, from + SCAN_STEP)
    const left = endOf(ordinal, policy.interval) - this.time.at(now)
    const last = left > 0 && left <= policy.interval / policy.spans + 1
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined) continue
      const flags = table.flags[slot] as number
      const key = this.#keys[slot]
      if (key === undefined || ordinal - key.current.ordinal >= IDLE_INTERVALS) {
        if ((flags & (BLOCKED | IN_FLIGHT | DUE)) === 0) this.site.forget(slot)
        else if ((flags & BLOCKED) !== 0) this.blockOf(slot, now)
        continue
      }
      if (exchange.storeDown || key.current.ordinal !== ordinal) continue
      const { next } = key
      if (all) {
        surrender(key.current, 0)
        if (key.unsaid) key.report = true
        if (next !== undefined && heldOf(next) > 0) {
          surrender(next, 0)
          this.#send(slot, key, next, now, batch, true)
        }
      } else if (resend) key.report = true
      if (key.report) {
        this.stats.countExchange(all ? CLOSE : RESEND)
        this.#send(slot, key, key.current, now, batch, all)
      } else if (last && next === undefined && !all && key.current.taken > 0 && (flags & IN_FLIGHT) === 0) {
        key.next = newLease((ordinal + 1) as Ordinal, this.#incarnation, this.site.limitOf(slot))
        this.stats.countExchange(SPAN_END)
        this.#send(slot, key, key.next, now, batch)
      }
    }
    return end >= table.end ? -1 : end
  }

  override forgotten(slot: number): void {
    // The store's counts of the key belong to an earlier incarnation from now on.
    if (this.#leasing.forget(slot)) this.#incarnation = newIncarnation()
  }

  protected override mayForget(slot: number): boolean {
    const key = this.#keys[slot]
    if (key === undefined || this.ordinal - key.current.ordinal > 0) return true
    // A key without requests, as after a manual block.
    return key.sentAt === Number.NEGATIVE_INFINITY && key.current.taken === 0 && key.waiting.first === undefined
  }

  override refund(name: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.table.find(name)
    const key = slot < 0 ? undefined : this.#keys[slot]
    // A later ordinal comes from a clock that was ahead. Its units count in the running interval now.
    if (key === undefined || ordinal < key.current.ordinal) return
    const { current } = key
    const back = Math.min(units, current.taken - current.given - current.cleared)
    if (!(back > 0)) return
    current.given += back
    key.emptyUntil = Number.NEGATIVE_INFINITY
    // Others may reject because of these units.
    if (current.tail && !this.exchange.storeDown) this.#leasing.want(slot, now)
  }

  override reset(name: string, slot: number, now: number): void {
    super.reset(name, slot, now)
    const key = slot < 0 ? undefined : this.#keys[slot]
    if (key !== undefined && !this.exchange.storeDown) this.#leasing.want(slot, now)
  }

  protected override cleared(_name: string, slot: number): void {
    const key = slot < 0 ? undefined : this.#keys[slot]
    if (key === undefined) return
    const epoch = this.site.resetAt(this.site.idOf(slot))
    hearReset(key.current, epoch)
    key.others = 0
    if (key.next !== undefined) hearReset(key.next, epoch)
    key.emptyUntil = Number.NEGATIVE_INFINITY
    key.report = true
  }

  override adopt(now: number): void {
    super.adopt(now)
    this.#visitAll()
  }

  override adoptTime(now: number): void {
    const before = this.ordinal
    super.adoptTime(now)
    if (this.ordinal < before) this.#visitAll()
  }

  #visitAll(): void {
    this.#changes++
    this.#slices.begin()
  }

  /** Another limit: the store must get it, and notifies all processes if few units are left by it. Or the process's clock was set back. */
  #changed(slot: number, key: KeyLeases | undefined): void {
    if (key === undefined || key.changes === this.#changes) return
    key.changes = this.#changes
    if (key.current.ordinal > this.ordinal && key.current.heard === 0)
      key.moveBack(this.ordinal, this.#incarnation, this.site.limitOf(slot))
    if (key.current.ordinal !== this.ordinal) return
    key.emptyUntil = Number.NEGATIVE_INFINITY
    key.report = true
    this.#leasing.want(slot, Number.NEGATIVE_INFINITY)
  }

  override recheck(slot: number): void {
    const key = this.#keys[slot]
    if (key !== undefined) key.emptyUntil = Number.NEGATIVE_INFINITY
  }

  // The results for a key.

  override remaining(slot: number): number {
    const key = this.#keys[slot]
    const limit = this.site.limitOf(slot)
    if (key === undefined || key.current.ordinal < this.ordinal) return limit
    // The store's free units may be by another limit.
    if (limit !== key.askedBy) return Math.max(0, limit - this.usedOf(slot))
    return Math.max(0, Math.min(limit, heldOf(key.current) + key.current.free))
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    const key = this.#keys[slot]
    const full = key !== undefined && this.site.limitOf(slot) - key.current.used < 1
    if (this.policy.cooldown > 0 && full && !this.storeAway && this.blockOf(slot, now) === undefined) {
      this.blocks.startCooldown(slot, now, this.#endOf(slot))
    }
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, _cost: number, now: number): Rejection {
    const block = this.blockOf(slot, now)
    if (block !== undefined) return { reason: block.manual ? 'blocked' : 'cooldown', retryAfterMs: block.until - now }
    return { reason: this.storeAway ? 'storeDown' : 'limit', retryAfterMs: Math.max(0, this.#endOf(slot) - now) }
  }

  /** When a key's interval ends here: by the process's clock, but not before the units of its lease end by the store's. */
  #endOf(slot: number): number {
    const current = this.#keys[slot]?.current
    if (current === undefined) return this.rollAt
    return current.ordinal < this.ordinal ? current.until : Math.max(this.rollAt, current.until)
  }

  override usedOf(slot: number): number {
    const key = this.#keys[slot]
    if (key === undefined || key.current.ordinal < this.ordinal) return 0
    return Math.max(0, key.others + this.ownOf(slot))
  }

  override ownOf(slot: number): number {
    const key = this.#keys[slot]
    return key === undefined || key.current.ordinal < this.ordinal ? 0 : key.current.taken - key.current.given - key.current.cleared
  }

  override unsyncedOf(slot: number): number {
    const key = this.#keys[slot]
    if (key === undefined || key.current.ordinal < this.ordinal) return 0
    return Math.max(0, key.untold)
  }

  override unsyncedSince(_slot: number, now: number): number {
    return now
  }

  override wasExchanged(slot: number): boolean {
    return (this.#keys[slot]?.current.heard ?? 0) > 0
  }

  override heardAt(slot: number): number {
    return this.#keys[slot]?.heardAt ?? Number.NEGATIVE_INFINITY
  }

  /** A lease request that only reads how much of a key was used. */
  askedLease(id: string): LeaseAsk {
    const slot = this.site.findId(id)
    const key = slot < 0 ? undefined : this.#keys[slot]
    const limit = slot < 0 ? this.policy.limit : this.site.limitOf(slot)
    const lease = key?.current.ordinal === this.ordinal ? key.current : newLease(this.ordinal, this.#incarnation, limit)
    return askFor(lease, { first: 0, waiting: 0, ahead: 0, ...this.#terms(limit, lease.ordinal) })
  }

  override tellAll(id: string, now: number): void {
    this.#leasing.tellAll(id, now)
  }

  override usedIn(cells: readonly Cell[], _now: number): number {
    return cells[0]?.taken ?? 0
  }

  // Leases are not counted by totals.

  override announced(): void {}
  override exceeded(slot: number, now: number): void {
    this.#leasing.want(slot, now)
  }
  protected override allowsSlowly(): boolean {
    return false
  }
  protected override sentAt(slot: number): number {
    return this.#keys[slot]?.sentAt ?? Number.NEGATIVE_INFINITY
  }
  protected override sendDue(): void {}
  protected override knownBy(): SourceIndex {
    return GLOBAL
  }
  protected override lost(): void {}
}
