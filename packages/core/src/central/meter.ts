import { CALENDAR_STEP } from '../algorithms/fixed-window/calendar-step.ts'
import { EPOCH_STEP } from '../algorithms/fixed-window/epoch-step.ts'
import { type Meter, type Rejection, UNDECIDED } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { Batch } from '../counting/batch.ts'
import { GatedMeter } from '../counting/gated-meter.ts'
import type { CentralAlgorithm, Exchange } from '../counting/site.ts'
import { GLOBAL, OVERFLOWED, type SourceIndex } from '../report/stats.ts'
import type { Cell, DecidedPolicy, Question, StorePolicy, SyncResult, Verdict } from '../store/contract.ts'
import type { Calendar } from '../time/calendar.ts'
import type { Ordinal } from '../time/intervals.ts'
import { CountedAhead } from './counted-ahead.ts'
import { Groups } from './groups.ts'
import type { CentralAsks } from './link.ts'
import { TRUST } from './places.ts'
import { Unreadable } from './unreadable.ts'

/** The way to the store, as meters see it. */
export interface CentralStore {
  /** What asks it, once that is loaded. */
  readonly link: CentralAsks | undefined
  /** Whether requests are decided about without the store now. */
  readonly alone: boolean
  /** Tells the store something that nobody waits for, until it has heard it; once. */
  tell(question: Question): void
  /** Asks the store; undefined when it does not answer within `storeTimeout` milliseconds. */
  look(question: Question, storeTimeout: number): Promise<Verdict | undefined>
}

/** What the store said last of a key that it rejected. Times are of the monotonic clock. */
interface Closed {
  /** What the rejected request cost, and the units that were left. */
  readonly cost: number
  readonly left: number
  /** When a request of this cost fits if none comes before it. */
  readonly until: number
  /** Until when the store is not asked again: at other nodes units may come back. */
  readonly trusted: number
  /** When all units are back. */
  readonly empty: number
}

/** So much later than a request was sent the store takes its units, in milliseconds, if it answers in time as a rule. */
const LATE = 50
/** So near to an interval's end, in milliseconds, the store may be in another one than this node: clocks show whole ones. */
const EDGE = 5
/** Keys of which it is remembered what was allowed without the store; the oldest goes. */
const MOST_UNTOLD = 100_000
/** Milliseconds by which a difference of times may be wrong. */
const ROUNDED = 2e-6
/** Of what a key may use: differences below it are rounding. */
const ROUNDING = 1e-9

/**
 * The keys of a policy whose requests the store decides about. It does not decide; it knows what the store said last. That is kept
 * in the algorithm's own local meter, made to agree with each reply: so it is right at any later moment, and takes over while the
 * store is away. Then each unit of this node stands for one of each live node.
 */
export class CentralMeter extends GatedMeter {
  readonly jitter: boolean = false
  readonly grouping: Groups
  readonly ahead: CountedAhead
  #decided: DecidedPolicy
  readonly #calendar: Calendar | undefined
  readonly #algorithm: CentralAlgorithm
  readonly #store: CentralStore
  #inner: Meter
  /** Of the epoch's cells that decisions are of; undefined where they are of milliseconds. */
  readonly #width: number | undefined
  #toldUntil = Number.NEGATIVE_INFINITY
  /** When something was allowed without the store last, by its time. */
  #aloneAt = Number.NEGATIVE_INFINITY
  readonly #closed = new Map<number, Closed>()
  /** By slot, when the store answered last about its key. */
  readonly #heardAt: (number | undefined)[] = []
  /** Keys of which the store can say nothing. */
  readonly #unreadable = new Unreadable()
  /** Units by key that the store is being asked for, and may be about to count. */
  readonly #flying = new Map<string, number>()
  /** Units by key that were allowed without the store, which it has not been told of. */
  readonly #untold = new Map<string, number>()

  /** @param before what stood in its place, whose counts go on */
  constructor(algorithm: CentralAlgorithm, site: SharedSite, exchange: Exchange, store: CentralStore, before?: Meter) {
    const { id, limit, interval } = site.policy
    super(site, exchange, { id, width: interval, cells: 1, limit, hot: Number.POSITIVE_INFINITY, ttl: 2 * interval } satisfies StorePolicy)
    this.#algorithm = algorithm
    this.#store = store
    this.ahead = new CountedAhead(this, algorithm.step, store)
    this.grouping = new Groups(this, this.ahead, store)
    this.#inner = before ?? this.#make()
    this.allowed = this.#inner.allowed
    this.rollAt = this.#inner.rollAt
    const { step = EPOCH_STEP } = algorithm
    this.#calendar = site.policy.calendar
    this.#decided = Object.freeze({ id, step, parameters: step.parameters(site.policy) })
    this.#width = step.width?.(this.#decided.parameters)
  }

  /** What is known here. */
  get inner(): Meter {
    return this.#inner
  }

  #make(): Meter {
    return this.#algorithm.local(this.site, Object.create(this.exchange, { localTime: { value: this.exchange.time } }) as Exchange)
  }

  /** Whether the key is known to have no room for such a request, so that the store need not be asked. */
  closedTo(slot: number, cost: number, now: number): boolean {
    if (this.barred(slot, cost, now)) return true
    const closed = this.#closed.get(slot)
    return closed !== undefined && closed.cost === cost && now < closed.trusted
  }

  /** Whether a key is decided about without the store, as that could say nothing of it a moment ago. */
  paused(slot: number, now: number): boolean {
    return this.#unreadable.any && now < this.#unreadable.until(this.site.idOf(slot))
  }

  /** The store answered, but could say nothing of a key. */
  unreadable({ key }: Question, now: number): void {
    this.#unreadable.found(key, now)
  }

  #without(slot: number, now: number): boolean {
    return this.#store.alone || this.paused(slot, now)
  }

  /** Whether such a request could not go, whatever is left. */
  barred(slot: number, cost: number, now: number): boolean {
    return this.blockOf(slot, now) !== undefined || cost > this.site.most(this.site.limitOf(slot))
  }

  /**
   * Takes over what the store said of a request.
   *
   * @param left units that are left to the key, once it is known whether the request was counted
   */
  follow(slot: number, { key, units: cost, limit, at }: Question, verdict: Verdict, left: number, now: number): void {
    if (this.#unreadable.any) this.#unreadable.read(key)
    this.#heardAt[slot] = now
    const { allowed, remaining, resetAfterMs, retryAfterMs } = verdict
    if (allowed) this.#closed.delete(slot)
    else {
      // A difference of times must not make a whole wait one millisecond more. The next request is at the store later than that.
      const wait = retryAfterMs - ROUNDED
      this.#closed.set(slot, { cost, left, until: now + wait, trusted: now + Math.min(wait, TRUST), empty: now + resetAfterMs })
    }
    const most = this.site.most(limit)
    if (most === Number.POSITIVE_INFINITY) return
    const used = most - left
    // What was allowed without the store it does not know yet: the answer says how much there is at least, and of its own request that it went.
    const alone = this.missedBy(at)
    if (this.#inner.agree !== undefined) {
      // What another policy rejected comes back: it warms nothing. A debt beyond the bucket the store's answer does not show.
      if (allowed && left <= remaining) this.#inner.add(slot, cost, now)
      const more = used - this.#inner.usedOf(slot, now)
      if (more > ROUNDING * most || (more < -ROUNDING * most && !alone)) this.#inner.agree(slot, used, now)
      return
    }
    // It was said of an interval that ends now: of the next one, which may run here already, it would be counted.
    if (resetAfterMs < this.exchange.time.at(now) - at + Math.max(EDGE, this.time.uncertainty(now))) return
    if (alone && allowed && left <= remaining) this.#inner.add(slot, cost, now)
    const more = used - this.#inner.usedOf(slot, now)
    if (more < -ROUNDING * most) {
      if (alone) return
      this.#inner.reset(this.site.keyOf(slot), slot, now)
      if (used > 0) this.#inner.add(slot, used, now)
    } else if (more > ROUNDING * most) this.#inner.add(slot, more, now)
  }

  /** Whether units were allowed without the store of which it could not know when it was asked then. */
  missedBy(at: number): boolean {
    return this.#store.alone || this.#aloneAt >= at
  }

  /** The store is asked for units: until that is decided, nobody else may have them. */
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

  /** Units that the store has counted, or an answer would have. */
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

  /** What the store is asked by. It knows no calendar: it is told of the interval that the question is of. */
  #decidedAt(at: number): DecidedPolicy {
    if (this.#calendar === undefined) return this.#decided
    const { start, end } = this.#calendar.at(at)
    if (this.#decided.parameters[1] !== start) {
      this.#decided = Object.freeze({ id: this.policy.id, step: CALENDAR_STEP, parameters: [end, start] })
    }
    return this.#decided
  }

  /** What a unit of this node counts for while the store is away. */
  #scaled(slot: number, cost: number): number {
    return cost > 0 ? Math.max(cost, Math.min(cost * this.nodes, this.site.most(this.site.limitOf(slot)))) : 0
  }

  // What is decided without asking: by knowledge of the store, or alone.

  override take(): number {
    return UNDECIDED
  }

  override fits(): boolean {
    return false
  }

  override fullBy(): SourceIndex | -1 {
    return -1
  }

  /** Asked here where another policy rejects, or for a look: the store decides about all others. */
  override allows(slot: number, cost: number, now: number): boolean {
    if (this.#without(slot, now)) return this.allowsAlone(slot, cost, now)
    return !this.closedTo(slot, cost, now) && this.#inner.allows(slot, cost, now, false)
  }

  /** As `allows`, by the policy's choice for times without the store. */
  allowsAlone(slot: number, cost: number, now: number): boolean {
    const { failMode } = this.policy
    if (this.blockOf(slot, now) !== undefined || failMode === 'closed') return false
    const flying = this.#flying.size === 0 ? 0 : (this.#flying.get(this.site.idOf(slot)) ?? 0)
    return failMode === 'open' || this.#inner.allows(slot, this.#scaled(slot, cost) + flying, now, false)
  }

  /** Counts a charge, or a request that was allowed alone. */
  override add(slot: number, cost: number, now: number): void {
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
    // An outage may be long, and keys many.
    if (before === 0 && this.#untold.size >= MOST_UNTOLD) this.#untold.delete(this.#untold.keys().next().value as string)
    this.#untold.set(id, before + units)
  }

  /** Counts here what the store is told of by somebody else. */
  addAlone(slot: number, cost: number, now: number): void {
    this.#aloneAt = this.exchange.time.at(now)
    this.#inner.add(slot, this.#scaled(slot, cost), now)
  }

  override reject(slot: number, cost: number, now: number): Rejection {
    const closed = this.#closed.get(slot)
    const alone = this.#without(slot, now)
    if (this.policy.cooldown > 0 && !alone && closed !== undefined && now < closed.until && this.blockOf(slot, now) === undefined) {
      // A request of one unit would not fit either.
      if (closed.left < Math.min(1, closed.cost)) this.blocks.startCooldown(slot, now, Math.min(closed.until, now + this.policy.interval))
    }
    return this.explain(slot, cost, now)
  }

  override explain(slot: number, cost: number, now: number): Rejection {
    const block = this.blockOf(slot, now)
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

  override remaining(slot: number, now: number): number {
    return this.#inner.remaining(slot, now)
  }

  override resetAfterMs(slot: number, now: number): number {
    const closed = this.#closed.get(slot)
    return closed !== undefined && now < closed.until ? closed.empty - now : this.#inner.resetAfterMs(slot, now)
  }

  override mark(slot: number): number {
    return this.#inner.mark(slot)
  }

  override untake(slot: number, mark: number, cost: number): void {
    this.#inner.untake(slot, mark, cost)
    this.allowed -= cost
  }

  override refund(key: string, ordinal: Ordinal, units: number, now: number): void {
    const slot = this.site.table.find(key)
    if (slot >= 0) this.#closed.delete(slot)
    if (this.ahead.free(key, slot, ordinal, units, now)) return
    const id = slot >= 0 ? this.site.idOf(slot) : key
    const untold = this.#untold.get(id) ?? 0
    const back = Math.min(untold, units)
    this.#inner.refund(key, ordinal, units - back + (slot >= 0 ? this.#scaled(slot, back) : 0), now)
    if (back > 0) this.#untold.set(id, untold - back)
    if (units > back) this.#store.tell(this.ask('give-back', id, slot, units - back, this.#timeOf(ordinal, now)))
  }

  /** Has decisions know when they were asked for: refunds must. */
  begin(now: number): void {
    if (this.#width !== undefined || now < this.#toldUntil) return
    const millisecond = Math.floor(now)
    this.#toldUntil = millisecond + 1
    this.site.movedTo(millisecond as Ordinal)
  }

  /** When units were taken, by the store's time: no later than they were, or no earlier where the step wants to know that. */
  #timeOf(ordinal: Ordinal, now: number): number {
    if (this.#width !== undefined) return this.#calendar?.of(ordinal).start ?? ordinal * this.#width
    const off = this.time.uncertainty(now)
    return this.time.at(ordinal) + (this.#decided.step.sinceStart === true ? off + LATE : -off)
  }

  override reset(key: string, slot: number, now: number): void {
    this.#inner.reset(key, slot, now)
    this.cleared(key, slot)
  }

  protected override cleared(_key: string, slot: number): void {
    if (slot < 0) return
    const id = this.site.idOf(slot)
    this.#closed.delete(slot)
    this.ahead.forget(slot)
    this.#untold.delete(id)
    // The reset may have repaired it.
    this.#unreadable.read(id)
  }

  override tellReset(id: string, known: number, now: number): number {
    this.#store.tell(this.ask('reset', id, -1, 0, this.exchange.time.at(now)))
    return super.tellReset(id, known, now)
  }

  /**
   * The store answers again: it is told what was allowed without it, as far as that still counts.
   *
   * @param most so many keys at once
   * @returns how many it was told of
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

  /** Units of this node that have not run out: of a key without room, which may have more, as many as fit and those that were charged beyond. */
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

  override usedIn(cells: readonly Cell[]): number {
    return cells[0]?.taken ?? 0
  }

  // The local meter looks after time and keys.

  override roll(now: number): void {
    this.#inner.roll(now)
    this.rollAt = this.#inner.rollAt
  }

  override adoptTime(now: number): void {
    // What it has counted by this node's own clock may be of a time that is still to come.
    this.table.restride(this.table.stride)
    this.#inner = this.#make()
    this.roll(now)
  }

  override invalidate(now: number, away: boolean): void {
    if (away) {
      this.#closed.clear()
      this.#unreadable.clear()
    }
    this.roll(now)
  }

  override adopt(now: number): void {
    this.#closed.clear()
    this.storePolicy = Object.freeze({ ...this.storePolicy, limit: this.policy.limit })
    this.#inner.adopt(now)
    this.rollAt = this.#inner.rollAt
  }

  override recheck(slot: number): void {
    this.#closed.delete(slot)
    this.#inner.recheck(slot)
  }

  override makeRoom(now?: number): boolean {
    return this.#inner.makeRoom(now)
  }

  override scan(from: number, now: number): number {
    return this.#inner.sweep(from, now)
  }

  override forgotten(slot: number): void {
    this.#closed.delete(slot)
    this.#heardAt[slot] = undefined
    this.ahead.forget(slot)
    // What it was allowed has run out.
    if (this.#untold.size > 0) this.#untold.delete(this.site.idOf(slot))
    this.#inner.forgotten(slot)
  }

  override usedOf(slot: number, now: number): number {
    return this.#inner.usedOf(slot, now)
  }

  override ownOf(slot: number, now: number): number {
    return this.#inner.ownOf(slot, now)
  }

  override unsyncedOf(slot: number): number {
    return this.#untold.get(this.site.idOf(slot)) ?? 0
  }

  override unsyncedSince(_slot: number, now: number): number {
    return now
  }

  override wasExchanged(): boolean {
    return false
  }

  override heardAt(slot: number): number {
    return this.#heardAt[slot] ?? Number.NEGATIVE_INFINITY
  }

  override sourceOf(slot: number): SourceIndex {
    return this.site.isShared(slot) ? OVERFLOWED : GLOBAL
  }

  // Nothing of it is exchanged in the background but blocks and resets.

  override exceeded(): void {}
  override tellAll(): void {}
  override undue(): void {}
  override collect(_slot: number, _now: number, _batch: Batch): void {}
  override announced(): void {}
  override settle(): void {}
  override fail(): void {}
  protected override allowsSlowly(): boolean {
    return false
  }
  protected override sentAt(): number {
    return Number.NEGATIVE_INFINITY
  }
  protected override sendDue(): void {}
  protected override mayForget(): boolean {
    return false
  }
  protected override knownBy(): SourceIndex {
    return GLOBAL
  }
  protected override lost(): void {}
}
