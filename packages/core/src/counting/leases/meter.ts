import { type Rejection, UNDECIDED } from '../../algorithms/meter.ts'
import type { Reserved, ReserveRequest, StoreReservations } from '../../algorithms/reservations.ts'
import type { SharedSite } from '../../algorithms/site.ts'
import { BLOCKED, DUE, IN_FLIGHT } from '../../keys/key-table.ts'
import { Slices } from '../../keys/slices.ts'
import { CLOSE, RESEND, type SourceIndex, SPAN_END } from '../../report/stats.ts'
import type { Cell, StorePolicy, SyncEntry, SyncResult } from '../../store/contract.ts'
import type { LeaseAsk, LeaseNotice } from '../../store/leases/ask.ts'
import { heldOf, surrender } from '../../store/leases/lease.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { Batch, Ticket } from '../batch.ts'
import { GatedMeter } from '../gated-meter.ts'
import type { ScanOptions, StoreExchange } from '../site.ts'
import { LeaseHolds } from './holds.ts'
import type { LeasedKey } from './leased-key.ts'
import { Leasing } from './leasing.ts'
import type { Quota } from './quota.ts'

/**
 * Counts with quota taken ahead: a request is allowed immediately as long as the process has units of its key, and otherwise waits for the
 * store. The protocol is in `store/leases`. This class decides when to request units, and which requests get them. Its `Quota` counts.
 */
export class LeaseMeter<Key extends LeasedKey> extends GatedMeter implements StoreReservations {
  readonly leased = true
  override readonly jitter: boolean
  readonly store: StoreExchange
  readonly #quota: Quota<Key>
  readonly leasing: Leasing<Key>
  /** Undefined for slots, which come back by themselves. */
  readonly holds: LeaseHolds | undefined
  /** By slot. */
  readonly keys: (Key | undefined)[] = []
  /** How often the rule has changed, or the clock was set back. A key takes over the last change when it is next used or visited. */
  #changes = 0
  #changedAt = 0
  readonly #slices: Slices

  constructor(
    site: SharedSite,
    store: StoreExchange,
    { width, ttl }: Pick<StorePolicy, 'width' | 'ttl'>,
    quota: (meter: LeaseMeter<Key>) => Quota<Key>,
  ) {
    const { id, limit } = site.policy
    super(site, store, { id, width, cells: 1, limit, hot: Number.POSITIVE_INFINITY, ttl })
    this.store = store
    this.#slices = new Slices(site.table, store.defer, (slot) => this.#changed(slot, this.keys[slot]))
    this.#quota = quota(this)
    this.leasing = new Leasing(this, store, this.#quota)
    this.jitter = !this.#quota.reused
    this.holds = this.#quota.reused ? undefined : new LeaseHolds(this, store)
  }

  get reservations(): StoreReservations {
    return this
  }

  get inFlight(): number {
    return this.#quota.inFlight ?? 0
  }

  heldOf(slot: number): number {
    const key = this.keys[slot]
    let units = 0
    for (const lease of [key?.current, key?.next]) {
      if (lease !== undefined && lease.ordinal >= this.ordinal) units += Math.max(0, heldOf(lease))
    }
    return units
  }

  override take(slot: number, cost: number, now: number): number {
    const key = this.keys[slot]
    if (key === undefined || this.#isBlocked(slot) || !this.#fits(slot, key, cost, this.site.limitOf(slot), now)) return UNDECIDED
    this.#count(slot, key, cost, now)
    return this.remaining(slot)
  }

  override fits(slot: number, cost: number, now: number = Number.NaN): boolean {
    const key = this.keys[slot]
    return key !== undefined && !this.#isBlocked(slot) && this.#fits(slot, key, cost, this.site.limitOf(slot), now)
  }

  #isBlocked(slot: number): boolean {
    return ((this.table.flags[slot] as number) & BLOCKED) !== 0
  }

  #fits(slot: number, key: Key, cost: number, limit: number, now: number): boolean {
    const { from, until } = key.current
    return now >= from && now < until && this.#quota.fits(slot, key, cost) && this.within(slot, key, cost, limit)
  }

  /** Whether a request stays within its limit if units were taken ahead by a higher one. */
  within(slot: number, key: Key, cost: number, limit: number): boolean {
    return limit >= key.askedBy || this.usedOf(slot) + cost <= limit
  }

  override fullBy(): SourceIndex | -1 {
    return -1
  }

  protected override allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    if (this.blocks.of(slot, now) !== undefined) return false
    const key = this.keyOf(slot, now)
    const mayUse = this.#quota.mayUse(slot, key, cost, now)
    if (mayUse && this.fits(slot, cost, now)) return true
    const used = this.#quota.used(slot, key)
    const { dryRun, failMode } = this.policy
    if (this.storeAway) return failMode === 'share' ? this.#fitsAlone(slot, key, used + cost) : failMode === 'open'
    if (dryRun && count) this.leasing.want(slot, now)
    // With `dryRun` no request waits, so it counts beyond the lease. A preview shows the store's remaining units.
    return (dryRun || !count) && mayUse && key.hold - used + key.current.free >= cost
  }

  /** Without the store a process uses its own lease, and its share of the units that were free. */
  #fitsAlone(slot: number, { hold, current }: Key, units: number): boolean {
    const limit = this.site.limitOf(slot)
    return units <= Math.min(limit, hold + Math.min(current.free, limit) / this.nodes)
  }

  override add(slot: number, cost: number, now: number = this.begunAt): void {
    this.#count(slot, this.keyOf(slot, now), cost, now)
  }

  #count(slot: number, key: Key, cost: number, now: number): void {
    this.#quota.count(slot, key, cost, now)
    this.allowed += cost
    const { current } = key
    if (key.owes || (heldOf(current) <= key.low && !current.tail && now >= key.emptyUntil)) this.leasing.want(slot, now)
  }

  override mark(slot: number): number {
    return this.keys[slot]?.current.taken ?? 0
  }

  override untake(slot: number, mark: number, cost: number): void {
    const key = this.keys[slot]
    if (key !== undefined) this.#quota.untake(slot, key, mark, cost)
    this.allowed -= cost
  }

  // Waiting requests.

  needsStore(slot: number, cost: number, now: number): boolean {
    if (this.storeAway || this.blocks.of(slot, now) !== undefined) return false
    const key = this.keyOf(slot, now)
    if (key.isEmptyFor(cost, now) || this.fits(slot, cost, now)) return false
    // Waiting requests already get all units there are: then no other one has to wait, however many come.
    return this.#quota.mayUse(slot, key, key.waiting.units + cost, now) && !this.fits(slot, cost, now)
  }

  reserve(request: ReserveRequest, now: number): Promise<Reserved | undefined> {
    const reserved = this.keyOf(request.slot, now).waiting.add(request)
    this.leasing.want(request.slot, now, true)
    return reserved
  }

  abandon(request: ReserveRequest): void {
    this.keys[request.slot]?.waiting.answer(request)
  }

  /** Counts a waiting request if it fits now. */
  grants(slot: number, key: Key, units: number, limit: number, now: number): boolean {
    if ((this.#quota.reused && this.#isBlocked(slot)) || !this.#fits(slot, key, units, limit, now)) return false
    this.#count(slot, key, units, now)
    return true
  }

  // Requests to the store, and its answers.

  override collect(slot: number, now: number, batch: Batch): void {
    const { flags, keys } = this.table
    flags[slot] = (flags[slot] as number) & ~DUE
    if (keys[slot] !== undefined) this.leasing.collect(slot, this.keyOf(slot, now), now, batch)
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    this.leasing.settle(ticket, entry, result, sent, now)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    this.leasing.fail(ticket, now, alone)
  }

  override undue(slot: number): void {
    super.undue(slot)
    const key = this.keys[slot]
    if (key !== undefined) this.leasing.giveUp(key)
  }

  heardLease(notice: LeaseNotice, now: number): void {
    const slot = this.site.findId(notice.key)
    if (slot >= 0 && this.keys[slot] !== undefined) this.leasing.heard(slot, this.keyOf(slot, now), notice, now)
  }

  // Keys and time.

  keyOf(slot: number, now: number): Key {
    let key = this.keys[slot]
    if (key?.changes !== this.#changes) this.#changed(slot, key)
    const limit = this.site.limitOf(slot)
    if (key === undefined) {
      this.keys[slot] = key = this.#quota.newKey(slot, limit, now)
      key.changes = this.#changes
    } else this.#quota.follow(slot, key, limit, now)
    return key
  }

  /** A key's record if its lease is of the running interval. */
  #running(slot: number): Key | undefined {
    const key = this.keys[slot]
    return key !== undefined && key.current.ordinal >= this.ordinal ? key : undefined
  }

  protected override visit(slot: number, now: number, { all, resend }: ScanOptions, batch: Batch): boolean {
    const quota = this.#quota
    quota.expire?.(slot, now)
    const flags = this.table.flags[slot] as number
    if (quota.isIdle(slot, this.keys[slot], now) && this.blocks.of(slot, now) === undefined && (flags & (IN_FLIGHT | DUE)) === 0) {
      this.site.forget(slot)
      return false
    }
    if (this.#running(slot) === undefined || this.exchange.storeDown) return false
    const key = this.keyOf(slot, now)
    if (all) {
      surrender(key.current, 0)
      if (key.unsaid) key.report = true
    } else if (resend) key.report = true
    if (!all && (flags & IN_FLIGHT) !== 0) return false
    const renews = quota.visit(slot, key, now, batch, all)
    if (renews || key.report) this.leasing.send(slot, key, key.current, now, batch, all ? CLOSE : renews ? SPAN_END : RESEND)
    return false
  }

  override forgotten(slot: number): void {
    const key = this.keys[slot]
    this.keys[slot] = undefined
    this.#quota.forgotten(slot, key)
    if (key !== undefined) this.leasing.giveUp(key)
  }

  protected override mayForget(slot: number): boolean {
    return this.#quota.mayForget(slot, this.keys[slot])
  }

  override refund(name: string, ordinal: Ordinal, units: number, now: number): void {
    this.#quota.refund(name, ordinal, units, now)
  }

  override reset(name: string, slot: number, now: number): void {
    const key = this.keys[slot]
    this.#quota.reset(name, slot, key, now)
    if (key !== undefined) this.#anew(slot, key, now)
  }

  /** A key's limit or counts have changed from outside: the store must get them. */
  #anew(slot: number, key: Key, now: number): void {
    key.mayHave(now)
    key.report = true
    this.leasing.want(slot, now)
  }

  override roll(now: number): void {
    if (this.#quota.roll === undefined) super.roll(now)
    else this.rollAt = this.#quota.roll(now)
  }

  nextWalk(now: number): number | undefined {
    return this.#quota.nextWalk?.(now)
  }

  override invalidate(now: number, away: boolean): void {
    super.invalidate(now, away)
    if (away) this.#quota.storeChanged?.(now)
  }

  override adopt(now: number): void {
    super.adopt(now)
    this.#visitAll(now)
  }

  override adoptTime(now: number): void {
    const before = this.ordinal
    super.adoptTime(now)
    if (this.ordinal < before) this.#visitAll(now)
  }

  #visitAll(now: number): void {
    this.#changes++
    this.#changedAt = now
    this.#slices.begin()
  }

  /** Another limit: the store must get it, and notifies all processes if few units are left by it. Or the process's clock was set back. */
  #changed(slot: number, key: Key | undefined): void {
    if (key === undefined || key.changes === this.#changes) return
    key.changes = this.#changes
    this.#quota.changed?.(slot, key)
    if (this.#running(slot) !== undefined) this.#anew(slot, key, this.#changedAt)
  }

  override recheck(slot: number): void {
    this.keys[slot]?.mayHave(Number.NEGATIVE_INFINITY)
  }

  // The results for a key.

  override remaining(slot: number): number {
    const limit = this.site.limitOf(slot)
    const key = this.#running(slot)
    const used = this.#quota.used(slot, key)
    if (key === undefined) return Math.max(0, limit - used)
    // The store's free units may be by another limit.
    if (limit !== key.askedBy) return Math.max(0, limit - this.usedOf(slot))
    const { current } = key
    return Math.max(0, Math.min(limit + current.cleared, key.hold + current.free) - used)
  }

  override resetAfterMs(_slot: number, now: number): number {
    return this.#quota.reused ? 0 : this.rollAt - now
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    const key = this.keys[slot]
    const full = key !== undefined && this.site.limitOf(slot) - key.current.used < 1
    if (this.policy.cooldown > 0 && full && !this.storeAway && this.blocks.of(slot, now) === undefined) {
      this.blocks.startCooldown(slot, now, this.#quota.backAt(key, now))
    }
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, _cost: number, now: number): Rejection {
    const block = this.blocks.of(slot, now)
    if (block !== undefined) return { reason: block.manual ? 'blocked' : 'cooldown', retryAfterMs: block.until - now }
    const retryAfterMs = Math.max(0, this.#quota.backAt(this.keys[slot], now) - now)
    return { reason: this.storeAway ? 'storeDown' : 'limit', retryAfterMs }
  }

  override usedOf(slot: number): number {
    return Math.max(0, (this.#running(slot)?.others ?? 0) + this.ownOf(slot))
  }

  override ownOf(slot: number): number {
    const key = this.#running(slot)
    return this.#quota.used(slot, key) - (key?.current.cleared ?? 0)
  }

  override unsyncedOf(slot: number): number {
    return Math.max(0, this.#running(slot)?.untold ?? 0)
  }

  override unsyncedSince(_slot: number, now: number): number {
    return now
  }

  override wasExchanged(slot: number): boolean {
    return (this.keys[slot]?.current.heard ?? 0) > 0
  }

  override heardAt(slot: number): number {
    return this.keys[slot]?.heardAt ?? Number.NEGATIVE_INFINITY
  }

  /** A lease request that only reads how much of a key is used. */
  askedLease(id: string): LeaseAsk {
    const slot = this.site.findId(id)
    const limit = slot < 0 ? this.policy.limit : this.site.limitOf(slot)
    const lease = this.#running(slot)?.current ?? this.#quota.newLease(limit)
    return this.leasing.askFor(lease, limit)
  }

  override syncKey(id: string, now: number): void {
    const slot = this.site.findId(id)
    const key = slot < 0 ? undefined : this.keys[slot]
    if (key === undefined || !key.unsaid) return
    key.report = true
    this.leasing.want(slot, now)
  }

  override usedIn(cells: readonly Cell[]): number {
    return cells[0]?.taken ?? 0
  }

  override exceeded(slot: number, now: number): void {
    this.leasing.want(slot, now)
  }

  protected override sentAt(slot: number): number {
    return this.keys[slot]?.sentAt ?? Number.NEGATIVE_INFINITY
  }

  protected override byOwn(): boolean {
    return false
  }
}
