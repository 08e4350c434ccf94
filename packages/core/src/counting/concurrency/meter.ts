import { LocalSlots } from '../../algorithms/concurrency/local.ts'
import { type Meter, type Rejection, type Reservation, type Reserving, UNDECIDED } from '../../algorithms/meter.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { DUE, IN_FLIGHT } from '../../keys/key-table.ts'
import { Slices } from '../../keys/slices.ts'
import { ASKED, CLOSE, GLOBAL, LEASE, type SourceIndex, SPAN_END } from '../../report/stats.ts'
import type { Cell, SyncEntry, SyncResult } from '../../store/contract.ts'
import { HELD, type LeaseAsk, type LeaseNotice } from '../../store/leases/ask.ts'
import { askFor, hearReply, heldOf, isOver, newLease } from '../../store/leases/lease.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { Batch, Ticket } from '../batch.ts'
import { GatedMeter } from '../gated-meter.ts'
import { type Answered, askedBy, Leasing, newIncarnation } from '../leasing.ts'
import type { ScanOptions, StoreExchange } from '../site.ts'
import { KeySlots } from './key-slots.ts'

/** Keys that one step of a walk visits, so that a step takes about a millisecond. */
const SCAN_STEP = 20_000
/** Reports of a process within the time for which the store waits for one: a few may be lost. */
const RENEWALS = 4
/** Milliseconds after which a store that had no slot for a key is tried again, unless it announces one. */
const EMPTY = 100
/** Milliseconds between two processes that request the same slot, on average: timers round to one. */
const LOT = 0.5
/** Milliseconds for which a key without slots is kept: a request may still wait for it. */
const WAITED_FOR = 5_000
/**
 * Requests in flight over all processes: each process takes slots ahead, and a request that finds none waits for the store. The local meter
 * counts the requests in flight here, and frees slots that were not released. A key's lease is its slots in the cluster. The protocol is
 * that of `store/leases`, for units that come back (`HELD`).
 *
 * The store keeps a process's slots as long as it gets reports, so the slots in use are reported every now and then. A process that was
 * silent for too long must not use its slots: it begins with a new lease, and reports the requests that still run.
 */
export class LeasedSlots extends GatedMeter implements Reserving {
  readonly jitter: boolean = false
  readonly #local: LocalSlots
  readonly #store: StoreExchange
  readonly #leasing: Leasing<KeySlots>
  readonly #keys: (KeySlots | undefined)[]
  /** How often the rule has changed. A key takes over the last change when it is next used or visited. */
  #changes = 0
  #changedAt = 0
  readonly #changing: Slices
  /** The store went down or came back: waiting requests may fit now. */
  #freedAt = 0
  readonly #freeing: Slices

  /** @param before the meter that it replaces, whose slots continue */
  constructor(site: SharedSite, exchange: StoreExchange, before?: Meter) {
    const { id, limit } = site.policy
    const { lifetime } = exchange
    super(site, exchange, { id, width: lifetime, cells: 1, limit, hot: Number.POSITIVE_INFINITY, ttl: lifetime })
    this.#store = exchange
    this.#leasing = new Leasing(this, exchange)
    this.#keys = this.#leasing.keys
    this.#changing = new Slices(site.table, exchange.defer, (slot) => this.#changed(slot, this.#keys[slot]))
    this.#freeing = new Slices(site.table, exchange.defer, (slot) => {
      const key = this.#keys[slot]
      if (key !== undefined) this.#mayHaveRoom(slot, key, this.#freedAt)
    })
    this.#local = (before as LocalSlots | undefined) ?? new LocalSlots(site)
    this.allowed = this.#local.allowed
    this.rollAt = this.#local.rollAt
  }

  get reserving(): Reserving {
    return this
  }

  get inFlight(): number {
    return this.#local.inFlight
  }

  /** Idle slots of a key. */
  heldOf(slot: number): number {
    const key = this.#keys[slot]
    return key === undefined ? 0 : Math.max(0, heldOf(key.current))
  }

  override take(slot: number, cost: number, now: number): number {
    const key = this.#keys[slot]
    if (key === undefined || !(now < key.current.until) || !key.holds(this.#local.usedOf(slot) + cost)) return UNDECIDED
    if (!this.#within(slot, key, cost, this.site.limitOf(slot))) return UNDECIDED
    if (this.#local.take(slot, cost, now) < 0) return UNDECIDED
    this.#counted(slot, key, cost, now)
    return this.remaining(slot, now)
  }

  override fits(slot: number, cost: number, now: number = Number.NaN): boolean {
    const key = this.#keys[slot]
    if (key === undefined || !(now < key.current.until)) return false
    if (!this.#within(slot, key, cost, this.site.limitOf(slot))) return false
    return key.holds(this.#local.usedOf(slot) + cost) && this.#local.fits(slot, cost, now)
  }

  /** Whether a request stays within its limit if slots were taken ahead by a higher one. */
  #within(slot: number, key: KeySlots, cost: number, limit: number): boolean {
    return limit >= key.askedBy || this.usedOf(slot) + cost <= limit
  }

  override fullBy(): SourceIndex | -1 {
    return -1
  }

  override allows(slot: number, cost: number, now: number, count = true): boolean {
    if (this.blockOf(slot, now) !== undefined) return false
    const key = this.#keyOf(slot, now)
    // Also frees slots that were not released.
    const here = this.#local.allows(slot, cost, now)
    this.#ran(slot, key)
    if (here && this.fits(slot, cost, now)) return true
    if (this.storeAway) return this.#leasing.allowsAlone(slot, key, this.#local.usedOf(slot), cost)
    const { dryRun } = this.policy
    if (dryRun && count) this.#leasing.want(slot, now)
    // With `dryRun` no request waits, and a preview shows the known state.
    return (dryRun || !count) && here && heldOf(key.current) + key.current.free >= cost
  }

  override add(slot: number, cost: number, now: number = Number.NaN): void {
    const at = Number.isNaN(now) ? this.rollAt : now
    this.#local.add(slot, cost, at)
    this.#counted(slot, this.#keyOf(slot, at), cost, at)
  }

  #counted(slot: number, key: KeySlots, cost: number, now: number): void {
    this.allowed += cost
    this.#ran(slot, key)
    const { current } = key
    if (key.owes || (!current.tail && heldOf(current) <= key.low && now >= key.emptyUntil)) this.#leasing.want(slot, now)
  }

  #ran(slot: number, key: KeySlots): void {
    key.run(this.#local.usedOf(slot))
  }

  override mark(): number {
    return 0
  }

  override untake(slot: number, mark: number, cost: number): void {
    this.#local.untake(slot, mark, cost)
    this.allowed -= cost
    const key = this.#keys[slot]
    if (key !== undefined) this.#ran(slot, key)
  }

  // Waiting requests.

  needsStore(slot: number, cost: number, now: number): boolean {
    if (this.storeAway || this.blockOf(slot, now) !== undefined) return false
    const key = this.#keyOf(slot, now)
    if (now < key.emptyUntil || this.fits(slot, cost, now)) return false
    // Requests in flight or waiting here may use up all slots: then no other one has to wait, however many come.
    const asks = this.#local.allows(slot, key.waiting.units + cost, now)
    this.#ran(slot, key)
    return asks && !this.fits(slot, cost, now)
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
    this.#ran(slot, key)
    this.#serve(slot, key, now)
    if (!this.#leasing.maySend(slot, key, now)) return
    const waits = key.waiting.first !== undefined
    // Timers and clocks round.
    const asks = waits && now >= key.recallUntil - 1
    this.#send(slot, key, now, batch, { asks })
    if (waits && !asks) this.#leasing.want(slot, key.recallUntil)
  }

  /** `asks`: for waiting requests; `renews`: only reports this process; `leaving`: takes nothing more. */
  #send(slot: number, key: KeySlots, now: number, batch: Batch, { asks = false, renews = false, leaving = false }): void {
    const { current } = key
    const first = asks ? key.waiting.first : undefined
    const units = first === undefined ? 0 : Math.ceil(key.waiting.units)
    const ahead = leaving ? 0 : key.ahead(units, this.nodes)
    const few = ahead > Math.max(0, heldOf(current)) && heldOf(current) <= key.low
    if (renews || leaving || current.tail) key.giveBack(units + ahead)
    if (units === 0 && !few && !renews && !key.report && !key.owes && !(leaving && key.unsaid)) return
    const limit = first?.limit ?? this.site.limitOf(slot)
    const wish = { first: Math.ceil(first?.cost ?? 0), waiting: units, ahead, ...this.#terms(limit) }
    this.#leasing.send(slot, key, current, wish, now, batch)
    this.stats.countExchange(leaving ? CLOSE : renews ? SPAN_END : units > 0 || few ? LEASE : ASKED)
  }

  /** The store counts whole slots: requests that share one are in the same process. */
  #terms(limit: number): Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
    return { limit: Math.floor(limit), nodes: this.nodes, early: 0, lifetime: this.#store.lifetime }
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    const answered = this.#leasing.answered(ticket, entry, result, sent, now)
    if (answered === undefined) return
    const { slot, key, lease, ask, reply } = answered
    // An answer for a lease that this process has given up is useless.
    if (lease === key.current) {
      hearReply(lease, ask, reply, sent, now, 0)
      key.heardUsed(ask, now)
      this.#ran(slot, key)
      this.#serve(slot, key, now)
      this.#rejectUnmet(answered, now)
    }
    if (key.waiting.first !== undefined || key.report || (key.current.tail && heldOf(key.current) > 0)) this.#leasing.want(slot, now)
  }

  /** Rejects requests that the store has no slots for. */
  #rejectUnmet({ slot, key, lease, ask, reply, end }: Answered<KeySlots>, now: number): void {
    const { waiting } = key
    const { first } = waiting
    if (end === 0 || first === undefined) return
    const mayHave = askedBy(ask, first.limit) && first.limit - lease.used >= first.cost
    if (mayHave && reply.quiet === 0 && waiting.begin >= key.recalled) {
      // Others have idle slots, and are called on to return them.
      key.recalled = waiting.end
      key.letOthers(now)
      return
    }
    const idle = key.hold - this.#local.usedOf(slot)
    const limit = this.site.limitOf(slot)
    for (const request of waiting.takeUnmet(end, (each) => this.#isUnmet(slot, key, each, idle, ask))) {
      // Later requests may have a higher limit, and so more slots.
      if (request.cost <= 1 && request.limit >= limit) key.emptyUntil = now + EMPTY
      request.answer(false)
    }
  }

  #isUnmet(slot: number, key: KeySlots, { cost, limit }: Reservation, idle: number, ask: LeaseAsk): boolean {
    return !this.#within(slot, key, cost, limit) || (cost > idle && askedBy(ask, limit))
  }

  #serve(slot: number, key: KeySlots, now: number): void {
    const take = ({ cost, limit }: Reservation) => {
      if (!(now < key.current.until) || !key.holds(this.#local.usedOf(slot) + cost) || !this.#within(slot, key, cost, limit)) return false
      if (!this.#local.takeWithin(slot, cost, limit)) return false
      this.#counted(slot, key, cost, now)
      return true
    }
    this.#leasing.serve(slot, key, now, take)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    this.#leasing.failed(ticket, now, alone)
  }

  override undue(slot: number): void {
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~DUE
    this.#leasing.giveUp(slot)
  }

  /** An announcement of the store to all processes. */
  heardLease({ key: id, ordinal, free, tail, lost }: LeaseNotice, now: number): void {
    const slot = this.site.findId(id)
    if (ordinal !== HELD || slot < 0 || this.#keys[slot] === undefined) return
    const key = this.#keyOf(slot, now)
    const { current, waiting } = key
    if (lost) key.report = true
    else {
      current.free = free
      current.tail = tail
      if (tail && key.unsaid) key.report = true
      if (free >= 1) {
        this.#mayHaveRoom(slot, key, now)
        if (this.nodes > this.site.limitOf(slot)) this.#drawLots(slot, key, now)
        else if (!this.#hasPart(slot, key, 1)) key.recallUntil = Number.NEGATIVE_INFINITY
        else if (tail && now >= key.recallUntil) key.letOthers(now)
      }
    }
    if (key.report || waiting.first !== undefined || (tail && heldOf(current) > 0)) this.#leasing.want(slot, now)
  }

  /**
   * There are fewer slots than processes, and all learn of a free one together: a random delay decides which requests it first, or it would
   * be the nearest. Processes that have one come last.
   */
  #drawLots(slot: number, key: KeySlots, now: number): void {
    const most = LOT * this.nodes
    if (this.#hasPart(slot, key, 1)) key.letOthers(now, most)
    else key.recallUntil = now + 1 + most * this.#store.random()
  }

  /** There may be slots for a key that had none. */
  #mayHaveRoom(slot: number, key: KeySlots, now: number): void {
    key.emptyUntil = Math.min(key.emptyUntil, now)
    this.site.freed(slot)
  }

  // Keys and time.

  #keyOf(slot: number, now: number): KeySlots {
    let key = this.#keys[slot]
    const limit = this.site.limitOf(slot)
    if (key?.changes !== this.#changes) this.#changed(slot, key)
    if (key === undefined) {
      this.#keys[slot] = key = new KeySlots(newLease(HELD, newIncarnation(), limit))
      key.changes = this.#changes
    } else if (isOver(key.current, now)) key.renounce(newIncarnation(), limit)
    return key
  }

  /** As often as processes report, and as overdue slots are searched for. */
  nextWalk(now: number): number {
    return Math.min(now + this.#store.lifetime / RENEWALS, Math.max(now + 1, this.#local.rollAt))
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    const { table } = this
    const end = Math.min(table.end, from + SCAN_STEP)
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined) continue
      if (this.#local.expire(slot, now)) this.#released(slot, now)
      const known = this.#keys[slot]
      if (this.#mayGo(slot, known, now)) this.site.forget(slot)
      else if (known !== undefined && !this.exchange.storeDown) this.#tell(slot, this.#keyOf(slot, now), now, batch, all, resend)
    }
    return end >= table.end ? -1 : end
  }

  #tell(slot: number, key: KeySlots, now: number, batch: Batch, leaving: boolean, resend: boolean): void {
    if (resend) key.report = true
    const flags = this.table.flags[slot] as number
    // Walks may come a little early.
    const due = now - key.sentAt >= (0.9 * this.#store.lifetime) / RENEWALS
    if (key.emptyUntil > Number.NEGATIVE_INFINITY && due) this.site.freed(slot)
    if ((flags & IN_FLIGHT) !== 0 && !leaving) return
    const renews = due && (key.hold > 0 || key.running > 0) && !leaving
    if (due) key.measured()
    if (leaving || renews || key.report) this.#send(slot, key, now, batch, { renews, leaving })
  }

  /** Whether a key may be removed: it has no slot here, and no request came for it lately. */
  #mayGo(slot: number, key: KeySlots | undefined, now: number): boolean {
    const busy = ((this.table.flags[slot] as number) & (IN_FLIGHT | DUE)) !== 0
    if (busy || this.blockOf(slot, now) !== undefined || this.#local.usedOf(slot) > 0) return false
    if (key === undefined) return true
    if (key.waiting.first !== undefined || now < key.emptyUntil + WAITED_FOR) return false
    return now >= key.current.until || (key.hold === 0 && !key.unsaid && !key.report)
  }

  protected override mayForget(slot: number): boolean {
    return this.#local.usedOf(slot) === 0 && this.#keys[slot]?.waiting.first === undefined
  }

  override forgotten(slot: number): void {
    this.#local.forgotten(slot)
    this.#leasing.forget(slot)
  }

  override refund(name: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.#local.holderOf(name, ordinal)
    this.#local.refund(name, ordinal, units)
    if (slot >= 0) this.#released(slot, now)
  }

  /** A request has ended. */
  #released(slot: number, now: number): void {
    const key = this.#keys[slot]
    if (key === undefined) return
    this.#ran(slot, key)
    const { current } = key
    key.emptyUntil = Math.min(key.emptyUntil, now)
    if (current.tail && this.#hasPart(slot, key)) {
      key.giveBack(0)
      key.letOthers(now)
    } else this.#serve(slot, key, now)
    if (current.tail || key.owes || key.waiting.first !== undefined) this.#leasing.want(slot, now)
  }

  /**
   * Whether a process has more than its part of the slots, or would with some more. Then others come first, or they might never get one.
   */
  #hasPart(slot: number, { hold }: KeySlots, more = 0): boolean {
    return hold > 0 && (hold + more) * this.nodes > this.site.limitOf(slot)
  }

  override reset(name: string, slot: number, now: number): void {
    this.#local.reset(name, slot, now)
    if (slot >= 0) this.#heardAnew(slot, now)
  }

  /** A key's limit or counts have changed from outside. */
  #heardAnew(slot: number, now: number): void {
    const key = this.#keys[slot]
    if (key === undefined) return
    this.#ran(slot, key)
    key.emptyUntil = Math.min(key.emptyUntil, now)
    key.report = true
    this.#leasing.want(slot, now)
  }

  override roll(now: number): void {
    this.#local.roll(now)
    this.rollAt = this.#local.rollAt
  }

  override adoptTime(now: number): void {
    this.roll(now)
  }

  override invalidate(now: number, away: boolean): void {
    this.roll(now)
    if (!away) return
    this.#freedAt = now
    this.#freeing.begin()
  }

  override adopt(now: number): void {
    this.storePolicy = Object.freeze({ ...this.storePolicy, limit: this.policy.limit })
    this.#local.adopt(now)
    this.rollAt = this.#local.rollAt
    this.#changes++
    this.#changedAt = now
    this.#changing.begin()
  }

  #changed(slot: number, key: KeySlots | undefined): void {
    if (key === undefined || key.changes === this.#changes) return
    key.changes = this.#changes
    this.#heardAnew(slot, this.#changedAt)
  }

  override recheck(slot: number): void {
    this.#local.recheck(slot)
    const key = this.#keys[slot]
    if (key !== undefined) key.emptyUntil = Number.NEGATIVE_INFINITY
  }

  // The results for a key.

  override remaining(slot: number, now: number): number {
    const key = this.#keys[slot]
    const left = this.#local.remaining(slot, now)
    if (key === undefined) return left
    // The store's free slots may be by another limit.
    const limit = this.site.limitOf(slot)
    if (limit !== Math.max(limit, key.askedBy)) return Math.max(0, Math.min(left, limit - this.usedOf(slot)))
    return Math.max(0, Math.min(left, key.hold - this.#local.usedOf(slot) + key.current.free))
  }

  override resetAfterMs(): number {
    return 0
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    return this.explain(slot, cost, now)
  }

  /** The end of a request in flight can't be predicted. */
  override explain(slot: number, _cost: number, now: number): Rejection {
    const block = this.blockOf(slot, now)
    if (block !== undefined) return { reason: block.manual ? 'blocked' : 'cooldown', retryAfterMs: block.until - now }
    return { reason: this.storeAway ? 'storeDown' : 'limit', retryAfterMs: 0 }
  }

  override usedOf(slot: number): number {
    const own = this.#local.usedOf(slot)
    const key = this.#keys[slot]
    return key === undefined ? own : own + key.others
  }

  override ownOf(slot: number): number {
    return this.#local.usedOf(slot)
  }

  override unsyncedOf(slot: number): number {
    return Math.max(0, this.#keys[slot]?.untold ?? 0)
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

  /** A lease request that only reads how much of a key is in flight. */
  askedLease(id: string): LeaseAsk {
    const slot = this.site.findId(id)
    const lease = this.#keys[slot]?.current ?? newLease(HELD, newIncarnation(), this.policy.limit)
    const limit = slot < 0 ? this.policy.limit : this.site.limitOf(slot)
    return askFor(lease, { first: 0, waiting: 0, ahead: 0, ...this.#terms(limit) })
  }

  override tellAll(id: string, now: number): void {
    this.#leasing.tellAll(id, now)
  }

  override usedIn(cells: readonly Cell[]): number {
    return cells[0]?.taken ?? 0
  }

  // Slots are not counted by totals, and can't be charged.

  override announced(): void {}
  override exceeded(): void {}
  protected override allowsSlowly(): boolean {
    return false
  }
  protected override sentAt(): number {
    return Number.NEGATIVE_INFINITY
  }
  protected override sendDue(): void {}
  protected override knownBy(): SourceIndex {
    return GLOBAL
  }
  protected override cleared(): void {}
  protected override lost(): void {}
}
