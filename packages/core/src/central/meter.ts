import { CALENDAR_STEP } from '../algorithms/fixed-window/calendar-step.ts'
import { EPOCH_STEP } from '../algorithms/fixed-window/epoch-step.ts'
import { type Meter, type MeterPolicy, type Rejection, type Syncing, UNDECIDED } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { CentralAlgorithm, Exchange, Exchanging } from '../counting/site.ts'
import { SyncedBlocks } from '../counting/synced-blocks.ts'
import { idOfKey } from '../keys/key-id.ts'
import { GLOBAL, OVERFLOWED, type SourceIndex } from '../report/stats.ts'
import type { Cell, DecidedPolicy, Question, StorePolicy, SyncResult, Verdict } from '../store/contract.ts'
import { type Calendar, epochTimeOf } from '../time/calendar.ts'
import type { EpochTime, Ordinal } from '../time/intervals.ts'
import { CentralHolds } from './holds.ts'
import { TRUST } from './key-reservations.ts'
import type { CentralAsks } from './link.ts'
import { CentralReservations } from './reservations.ts'
import { Unreadable } from './unreadable.ts'

/** The way to the store, as meters see it. */
export interface CentralStore {
  /** The link, once its code is loaded. */
  readonly link: CentralAsks | undefined
  /** Whether requests are decided without the store now. */
  readonly alone: boolean
  /** Reports something to the store, and repeats it until it has arrived. It counts once. */
  tell(question: Question): void
  /** Looks up a key in the store. Undefined without a reply within `storeTimeout` milliseconds. */
  look(question: Question, storeTimeout: number): Promise<Verdict | undefined>
}

/** The store's last rejection of a key. Times are of the monotonic clock. */
interface Closed {
  /** The cost of the rejected request, and the units that were left. */
  readonly cost: number
  readonly left: number
  /** When a request of this cost fits if none comes before it. */
  readonly until: number
  /** Until when the store is not tried again. Then other processes may have returned units. */
  readonly trusted: number
  /** When all units are back. */
  readonly empty: number
}

/** The store takes units at most this many milliseconds after the request was sent, if it usually answers in time. */
const LATE = 50
/** This many milliseconds before an interval's end, the store may already be in the next one, because clocks show whole milliseconds. */
const EDGE = 5
/** The most keys whose units without the store are remembered. The oldest is dropped. */
const MOST_UNTOLD = 100_000
/** Milliseconds by which a difference of times may be wrong. */
const ROUNDED = 2e-6
/** Differences below this part of a key's units are rounding. */
const ROUNDING = 1e-9

/**
 * The keys of a policy whose requests the store decides. This meter keeps the store's last answer in the algorithm's own local meter, which
 * it makes agree with each reply. So the answer stays correct as time passes, and the local meter takes over while the store is down. Then
 * each unit of this process counts once for each live process. Only its blocks and resets are synced in the background.
 */
export class CentralMeter implements Exchanging, Syncing {
  readonly site: SharedSite
  readonly exchange: Exchange
  readonly time: EpochTime
  readonly syncedBlocks: SyncedBlocks
  readonly syncing: Syncing = this
  storePolicy: StorePolicy
  readonly surveyed: number = 50_000
  readonly ordinal: Ordinal = 0 as Ordinal
  allowed: number
  rollAt: number
  readonly reservations: CentralReservations
  readonly holds: CentralHolds
  #decided: DecidedPolicy
  readonly #calendar: Calendar | undefined
  readonly #algorithm: CentralAlgorithm
  readonly #store: CentralStore
  #inner: Meter
  /** The length of the epoch's cells that decisions contain. Undefined if they contain milliseconds. */
  readonly #width: number | undefined
  #toldUntil = Number.NEGATIVE_INFINITY
  /** When units were last allowed without the store, by the store's time. */
  #aloneAt = Number.NEGATIVE_INFINITY
  readonly #closed = new Map<number, Closed>()
  /** The time of the store's last reply about the key, by slot. */
  readonly #heardAt: (number | undefined)[] = []
  /** Keys whose state the store can't read. */
  readonly #unreadable = new Unreadable()
  /** Units by key that are requested from the store, which may be about to count them. */
  readonly #flying = new Map<string, number>()
  /** Units by key that were allowed without the store and not reported yet. */
  readonly #untold = new Map<string, number>()

  /** @param before the meter that it replaces, whose counts continue */
  constructor(algorithm: CentralAlgorithm, site: SharedSite, exchange: Exchange, store: CentralStore, before?: Meter) {
    const { id, limit, interval } = site.policy
    this.site = site
    this.exchange = exchange
    this.storePolicy = { id, width: interval, cells: 1, limit, hot: Number.POSITIVE_INFINITY, ttl: 2 * interval }
    this.time = epochTimeOf(site.policy, exchange.time)
    this.syncedBlocks = new SyncedBlocks(this)
    this.#algorithm = algorithm
    this.#store = store
    this.reservations = new CentralReservations(this, algorithm.step, store)
    this.holds = new CentralHolds({
      time: exchange.time,
      get alone() {
        return store.alone
      },
      ask: (...all) => this.ask(...all),
      tell: (question) => store.tell(question),
      endOf: (at) => this.#endOf(at),
      timeOf: (ordinal, now) => this.#timeOf(ordinal, now),
      placed: (key) => this.#placed(key),
      change: (...all) => this.#change(...all),
    })
    this.#inner = before ?? this.#make()
    this.allowed = this.#inner.allowed
    this.rollAt = this.#inner.rollAt
    const { step = EPOCH_STEP } = algorithm
    this.#calendar = site.policy.calendar
    this.#decided = Object.freeze({ id, step, parameters: step.parameters(site.policy) })
    this.#width = step.width?.(this.#decided.parameters)
  }

  get policy(): MeterPolicy {
    return this.site.policy
  }

  get nodes(): number {
    return this.exchange.nodes
  }

  get roundTrip(): number {
    return this.exchange.roundTrip
  }

  /** The local meter, with the confirmed counts. */
  get inner(): Meter {
    return this.#inner
  }

  #make(): Meter {
    return this.#algorithm.local(this.site, Object.create(this.exchange, { localTime: { value: this.exchange.time } }) as Exchange)
  }

  /** Whether such a request is known not to fit, which saves the round trip. */
  closedTo(slot: number, cost: number, now: number): boolean {
    if (this.barred(slot, cost, now)) return true
    const closed = this.#closed.get(slot)
    return closed !== undefined && closed.cost === cost && now < closed.trusted
  }

  /** Whether a key is decided without the store, because the store could not read its state a moment ago. */
  paused(slot: number, now: number): boolean {
    return this.#unreadable.any && now < this.#unreadable.until(this.site.idOf(slot))
  }

  /** The store answered, but could not read a key's state. */
  unreadable({ key }: Question, now: number): void {
    this.#unreadable.found(key, now)
  }

  #without(slot: number, now: number): boolean {
    return this.#store.alone || this.paused(slot, now)
  }

  /** Whether such a request can't be allowed, however many units are left. */
  barred(slot: number, cost: number, now: number): boolean {
    return this.site.blocks.of(slot, now) !== undefined || cost > this.site.most(this.site.limitOf(slot))
  }

  /**
   * Takes over the store's answer to a request.
   *
   * @param left the key's remaining units, once it is decided whether the request counts
   */
  follow(slot: number, { key, units: cost, limit, at }: Question, verdict: Verdict, left: number, now: number): void {
    if (this.#unreadable.any) this.#unreadable.read(key)
    this.#heardAt[slot] = now
    const { allowed, remaining, resetAfterMs, retryAfterMs } = verdict
    if (allowed) this.#closed.delete(slot)
    else {
      // A difference of times must not make a whole wait one millisecond longer. The next request reaches the store later than that.
      const wait = retryAfterMs - ROUNDED
      this.#closed.set(slot, { cost, left, until: now + wait, trusted: now + Math.min(wait, TRUST), empty: now + resetAfterMs })
    }
    const most = this.site.most(limit)
    if (most === Number.POSITIVE_INFINITY) return
    const used = most - left
    // The answer may lack units that were allowed without the store. It shows a lower bound of the use, and that its own request is
    // counted.
    const alone = this.missedBy(at)
    if (this.#inner.agree !== undefined) {
      // Units that another policy rejected are returned, so they must not warm the key. The answer does not show a debt beyond the bucket.
      if (allowed && left <= remaining) this.#inner.add(slot, cost, now)
      const more = used - this.#inner.usedOf(slot, now)
      if (more > ROUNDING * most || (more < -ROUNDING * most && !alone)) this.#inner.agree(slot, used, now)
      return
    }
    // The answer is about an interval that ends now. Here the next one may already run, in which it must not count.
    if (resetAfterMs < this.exchange.time.at(now) - at + Math.max(EDGE, this.time.uncertainty(now))) return
    if (alone && allowed && left <= remaining) this.#inner.add(slot, cost, now)
    const more = used - this.#inner.usedOf(slot, now)
    if (more < -ROUNDING * most) {
      if (alone) return
      this.#inner.reset(this.site.keyOf(slot), slot, now)
      if (used > 0) this.#inner.add(slot, used, now)
    } else if (more > ROUNDING * most) this.#inner.add(slot, more, now)
  }

  /** Whether the store's answer to a question sent at `at` can lack units that were allowed without it. */
  missedBy(at: number): boolean {
    return this.#store.alone || this.#aloneAt >= at
  }

  /** The units are requested from the store: no other request may have them until that is decided. */
  fly({ key, units }: Question): void {
    this.#flying.set(key, (this.#flying.get(key) ?? 0) + units)
  }

  land({ key, units }: Question): void {
    const left = (this.#flying.get(key) ?? 0) - units
    if (left > ROUNDING) this.#flying.set(key, left)
    else this.#flying.delete(key)
  }

  owe(slot: number, units: number, now: number): void {
    this.#aloneAt = this.exchange.time.at(now)
    const missing = this.#scaled(slot, units) - this.#inner.usedOf(slot, now) - this.#over(slot, now)
    if (missing > 0) this.#inner.add(slot, missing, now)
    this.#keepUntold(this.site.idOf(slot), units)
  }

  /** Counts units that the store counted, or that were allowed without its answer. */
  counted(cost: number): void {
    this.allowed += cost
  }

  /** A question about a key of this policy. */
  ask(kind: Question['kind'], key: string, slot: number, units: number, at: number): Question {
    const limit = slot < 0 ? this.policy.limit : this.site.limitOf(slot)
    const policy = this.#decidedAt(at)
    const usual = slot < 0 || this.#algorithm.step?.paced === undefined ? limit : this.site.usualOf(slot)
    return { policy: usual === limit ? policy : { ...policy, parameters: [...policy.parameters, usual] }, key, kind, units, limit, at }
  }

  /** The step for a question. It has no calendar, so its parameters contain the interval at `at`. */
  #decidedAt(at: number): DecidedPolicy {
    if (this.#calendar === undefined) return this.#decided
    const { start, end } = this.#calendar.at(at)
    if (this.#decided.parameters[1] !== start) {
      this.#decided = Object.freeze({ id: this.policy.id, step: CALENDAR_STEP, parameters: [end, start] })
    }
    return this.#decided
  }

  /** The units that count for a request of this process while the store is down. */
  #scaled(slot: number, cost: number): number {
    return cost > 0 ? Math.max(cost, Math.min(cost * this.nodes, this.site.most(this.site.limitOf(slot)))) : 0
  }

  // Decisions without a round trip: by the store's last answer, or alone.

  take(): number {
    return UNDECIDED
  }

  fits(): boolean {
    return false
  }

  fullBy(): SourceIndex | -1 {
    return -1
  }

  /** Called if another policy rejects, or for a preview: the store decides all other requests. */
  allows(slot: number, cost: number, now: number): boolean {
    if (this.#without(slot, now)) return this.allowsAlone(slot, cost, now)
    return !this.closedTo(slot, cost, now) && this.#inner.allows(slot, cost, now, false)
  }

  /** Does the same as `allows`, by the policy's `failMode`. */
  allowsAlone(slot: number, cost: number, now: number): boolean {
    const { failMode } = this.policy
    if (this.site.blocks.of(slot, now) !== undefined || failMode === 'closed') return false
    const flying = this.#flying.size === 0 ? 0 : (this.#flying.get(this.site.idOf(slot)) ?? 0)
    return failMode === 'open' || this.#inner.allows(slot, this.#scaled(slot, cost) + flying, now, false)
  }

  /** Counts a charge, or a request that was allowed alone. */
  add(slot: number, cost: number, now: number): void {
    this.allowed += cost
    const id = this.site.idOf(slot)
    if (this.#store.alone) {
      this.addAlone(slot, cost, now)
      this.#keepUntold(id, cost)
      return
    }
    this.#inner.add(slot, cost, now)
    this.#store.tell(this.ask('add', id, slot, cost, this.exchange.time.at(now)))
  }

  #keepUntold(id: string, units: number): void {
    const before = this.#untold.get(id) ?? 0
    // An outage may be long, and the keys many.
    if (before === 0 && this.#untold.size >= MOST_UNTOLD) this.#untold.delete(this.#untold.keys().next().value as string)
    this.#untold.set(id, before + units)
  }

  /** Counts units here that other code reports to the store. */
  addAlone(slot: number, cost: number, now: number): void {
    this.#aloneAt = this.exchange.time.at(now)
    this.#inner.add(slot, this.#scaled(slot, cost), now)
  }

  reject(slot: number, cost: number, now: number): Rejection {
    const closed = this.#closed.get(slot)
    const alone = this.#without(slot, now)
    if (this.policy.cooldown > 0 && !alone && closed !== undefined && now < closed.until && this.site.blocks.of(slot, now) === undefined) {
      // Even a request of one unit would not fit.
      if (closed.left < Math.min(1, closed.cost))
        this.site.blocks.startCooldown(slot, now, Math.min(closed.until, now + this.policy.interval))
    }
    return this.explain(slot, cost, now)
  }

  explain(slot: number, cost: number, now: number): Rejection {
    const block = this.site.blocks.of(slot, now)
    if (block?.manual === true) return { reason: 'blocked', retryAfterMs: block.until - now }
    const wait = this.#opensIn(slot, cost, now)
    if (block !== undefined) return { reason: 'cooldown', retryAfterMs: Math.max(block.until - now, wait) }
    return { reason: this.#without(slot, now) ? 'storeDown' : 'limit', retryAfterMs: wait }
  }

  #opensIn(slot: number, cost: number, now: number): number {
    if (this.#without(slot, now)) {
      if (this.policy.failMode === 'closed')
        return Math.max(1, this.#store.alone ? this.rollAt - now : this.#unreadable.until(this.site.idOf(slot)) - now)
      return this.#inner.explain(slot, this.#scaled(slot, cost), now).retryAfterMs
    }
    const closed = this.#closed.get(slot)
    return closed?.cost === cost && closed.until > now ? closed.until - now : this.#inner.explain(slot, cost, now).retryAfterMs
  }

  remaining(slot: number, now: number): number {
    return this.#inner.remaining(slot, now)
  }

  resetAfterMs(slot: number, now: number): number {
    const closed = this.#closed.get(slot)
    return closed !== undefined && now < closed.until ? closed.empty - now : this.#inner.resetAfterMs(slot, now)
  }

  mark(slot: number): number {
    return this.#inner.mark(slot)
  }

  untake(slot: number, mark: number, cost: number): void {
    this.#inner.untake(slot, mark, cost)
    this.allowed -= cost
  }

  refund(key: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.site.table.find(key)
    if (slot >= 0) this.#closed.delete(slot)
    if (this.reservations.free(key, slot, ordinal, units, now)) return
    const { id } = this.#placed(key)
    const untold = this.#untold.get(id) ?? 0
    const back = Math.min(untold, units)
    this.#inner.refund(key, ordinal, units - back + (slot >= 0 ? this.#scaled(slot, back) : 0), now)
    if (back > 0) this.#untold.set(id, untold - back)
    if (units > back) this.#store.tell(this.ask('give-back', id, slot, units - back, this.#timeOf(ordinal, now)))
  }

  #placed(key: string): { readonly id: string; readonly slot: number } {
    const slot = this.site.table.find(key)
    return { id: slot >= 0 ? this.site.idOf(slot) : idOfKey(key), slot }
  }

  /** Counts more or fewer units of a key here, because a reservation was settled. */
  #change(key: string, ordinal: Ordinal, more: number, now: number): void {
    const { slot } = this.#placed(key)
    if (more > 0) {
      this.allowed += more
      if (slot >= 0) this.#inner.add(slot, more, now)
    } else if (more < 0) {
      this.#closed.delete(slot)
      this.#inner.refund(key, ordinal, -more, now)
    }
  }

  /** When units that are taken at a time leave the count: at the end of their interval, or when a full bucket would have drained. */
  #endOf(at: number): number {
    const { limit, interval } = this.policy
    if (this.#calendar !== undefined) return this.#calendar.at(at).end
    if (this.#width !== undefined && this.#decided.step.id === EPOCH_STEP.id) return (Math.floor(at / this.#width) + 1) * this.#width
    return at + interval * Math.max(1, this.site.most(limit) / Math.max(1, limit))
  }

  /** Passes the current millisecond to the site: a refund needs the time of its decision. */
  begin(now: number): void {
    if (this.#width !== undefined || now < this.#toldUntil) return
    const millisecond = Math.floor(now)
    this.#toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  /** Estimates when units were taken, by the store's time: not too late, or not too early if the step needs that. */
  #timeOf(ordinal: Ordinal, now: number): number {
    if (this.#width !== undefined) return this.#calendar?.of(ordinal).start ?? ordinal * this.#width
    const off = this.time.uncertainty(now)
    return this.time.at(ordinal) + (this.#decided.step.sinceStart === true ? off + LATE : -off)
  }

  refundNewest(slot: number, units: number, now: number): number {
    this.refund(this.site.keyOf(slot), Number.POSITIVE_INFINITY as Ordinal, units, now)
    return units
  }

  reset(key: string, slot: number, now: number): void {
    this.#inner.reset(key, slot, now)
    if (slot < 0) return
    const id = this.site.idOf(slot)
    this.#closed.delete(slot)
    this.reservations.forget(slot)
    this.#untold.delete(id)
    // The reset may have repaired the key.
    this.#unreadable.read(id)
  }

  resetHere(id: string, now: number): void {
    this.#store.tell(this.ask('reset', id, -1, 0, this.exchange.time.at(now)))
  }

  /**
   * Reports the units that were allowed while the store was down, as far as they still count.
   *
   * @param most keys at a time
   * @returns how many keys were reported
   */
  tellUntold(now: number, most: number): number {
    let told = 0
    for (const [id, units] of this.#untold) {
      if (told >= most) break
      this.#untold.delete(id)
      const slot = this.site.findId(id)
      if (slot < 0) continue
      const counts = Math.min(units, this.#stillUsed(slot, now))
      if (counts <= 0) continue
      told++
      this.#store.tell(this.ask('add', id, slot, counts, this.exchange.time.at(now)))
    }
    return told
  }

  /**
   * Units of this process that have not expired. If a key without capacity has more, it is the units that fit, plus the charged units above
   * the limit.
   */
  #stillUsed(slot: number, now: number): number {
    const most = this.site.most(this.site.limitOf(slot))
    const over = this.#over(slot, now)
    if (over > 0) return most + over
    if (this.policy.failMode === 'open' && this.#inner.remaining(slot, now) < 1) return most
    return Math.max(1, Math.min(most, this.#inner.usedOf(slot, now)) / this.nodes)
  }

  /** Units beyond the limit. */
  #over(slot: number, now: number): number {
    return this.#inner.over?.(slot, now) ?? 0
  }

  async inquire(id: string, storeTimeout: number): Promise<SyncResult | undefined> {
    const slot = this.site.findId(id)
    const question = this.ask('take', id, slot, 0, this.exchange.time.at(this.rollAt - 1))
    const verdict = await this.#store.look(question, storeTimeout)
    if (verdict === undefined) return undefined
    const most = this.site.most(question.limit)
    const taken = most === Number.POSITIVE_INFINITY ? 0 : most - verdict.remaining
    return { cells: [{ ordinal: this.ordinal, taken, given: 0 }], blocked: 0 }
  }

  usedIn(cells: readonly Cell[]): number {
    return cells[0]?.taken ?? 0
  }

  // The local meter handles time and keys.

  roll(now: number): void {
    this.#inner.roll(now)
    this.rollAt = this.#inner.rollAt
  }

  adoptTime(now: number): void {
    // Counts by this process's own clock may be of a time that is still to come.
    const { table } = this.site
    table.restride(table.stride)
    this.#inner = this.#make()
    this.roll(now)
  }

  invalidate(now: number, away: boolean): void {
    if (away) {
      this.#closed.clear()
      this.#unreadable.clear()
    }
    this.roll(now)
  }

  adopt(now: number): void {
    this.#closed.clear()
    this.storePolicy = Object.freeze({ ...this.storePolicy, limit: this.policy.limit })
    this.#inner.adopt(now)
    this.rollAt = this.#inner.rollAt
  }

  recheck(slot: number): void {
    this.#closed.delete(slot)
    this.#inner.recheck(slot)
  }

  makeRoom(now?: number): boolean {
    return this.#inner.makeRoom(now)
  }

  sweep(from: number, now: number): number {
    return this.#inner.sweep(from, now)
  }

  forgotten(slot: number): void {
    this.#closed.delete(slot)
    this.#heardAt[slot] = undefined
    this.reservations.forget(slot)
    // Its units have expired.
    if (this.#untold.size > 0) this.#untold.delete(this.site.idOf(slot))
    this.#inner.forgotten(slot)
  }

  usedOf(slot: number, now: number): number {
    return this.#inner.usedOf(slot, now)
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.usedOf(slot, now) - this.site.most(this.site.limitOf(slot)))
  }

  ownOf(slot: number, now: number): number {
    return this.#inner.ownOf(slot, now)
  }

  shareOf(): number {
    return 1 / this.nodes
  }

  unsyncedOf(slot: number): number {
    return this.#untold.get(this.site.idOf(slot)) ?? 0
  }

  unsyncedSince(_slot: number, now: number): number {
    return now
  }

  wasExchanged(): boolean {
    return false
  }

  heardAt(slot: number): number {
    return this.#heardAt[slot] ?? Number.NEGATIVE_INFINITY
  }

  sourceOf(slot: number): SourceIndex {
    return this.site.isShared(slot) ? OVERFLOWED : GLOBAL
  }
}
