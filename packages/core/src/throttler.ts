import { type Clock, systemClock } from './clock.ts'
import { type Counter, type CounterHost, NO_SLOT, type Refusal, UNANSWERED, wireOfKey } from './counter.ts'
import { ANNOUNCED, type BlockCause, GLOBAL, LOCAL, type SourceIndex } from './counter-stats.ts'
import { CombinedDecision, type Decision, decisiveOf, NO_POLICY, PolicyDecision } from './decision.ts'
import { type Duration, parseDuration } from './duration.ts'
import { invalidOption, show, WeirError, warnProcess } from './errors.ts'
import { Emitter, type EventName, type Listener } from './events.ts'
import { SETTLE } from './fixed-counter.ts'
import { nodeReader } from './http/node-reader.ts'
import type { PlannedPolicyOptions } from './http/plans.ts'
import type { RequestReader } from './http/reader.ts'
import { Rules } from './http/rules.ts'
import { logEvents } from './logger.ts'
import { makeCounter } from './make-counter.ts'
import type { ClusterNode } from './node-status.ts'
import { oneOf, parsePolicies } from './parse-policy.ts'
import type { Policy, PolicyOptions } from './policy.ts'
import type { Reservation } from './reservations.ts'
import { type Snapshot, SnapshotMaker, type SnapshotOptions } from './snapshot.ts'
import type { Announcement, HeartbeatReply, Store, SyncReply } from './store.ts'
import { StoreTime } from './store-time.ts'
import { SyncLoop } from './sync-loop.ts'
import { SyncStats } from './sync-stats.ts'
import { ThrottledReport } from './throttled-report.ts'
import { checkOptions, newNodeId, type Overflow, requestRules, type ThrottlerOptions } from './throttler-options.ts'
import type { Ordinal } from './time.ts'
import { Watch } from './watch.ts'

/** Which policies a block is of. */
export interface BlockOptions {
  /** A policy's name. Default: all policies. */
  readonly policy?: string
}

/** `local`: without a store; `connecting`: the store has not answered yet. */
export type ThrottlerState = 'idle' | 'local' | 'connecting' | 'synced' | 'degraded' | 'closed'

/**
 * Makes a throttler. It connects at its first decision, or at `start()`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_MISSING_OPTION`, `WEIR_DUPLICATE_POLICY`
 *
 * @example
 * const throttler = createThrottler({ policies: [{ name: 'user', limit: 100, interval: '1m' }], store })
 * if (!throttler.check(userId).allowed) refuse()
 */
export function createThrottler<const Name extends string = string, Req = unknown>(
  options: ThrottlerOptions<Req, Name>,
): Throttler<Name, Req> {
  return new Throttler(options)
}

/** One node: decides at once from what it knows, and exchanges counts with the other nodes in the background. */
export class Throttler<Name extends string = string, Req = unknown> {
  /** Unique to this start. */
  readonly nodeId: string
  readonly #clock: Clock
  readonly #store: Store | undefined
  readonly #host: CounterHost
  readonly #maxKeys: number
  readonly #overflow: Overflow
  #policies: readonly Policy<Name>[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  #version = 0
  #strict = false
  #counters: readonly Counter[] = []
  #single: Counter | undefined
  readonly #emitter: Emitter
  readonly #loop: SyncLoop
  readonly #time: StoreTime
  readonly #localTime: StoreTime
  readonly #closeTimeout: number
  #ownScratch: Scratch = { slots: [], keys: [], costs: [] }
  #deciding = false
  readonly #sync = new SyncStats()
  readonly #snapshots = new SnapshotMaker()
  readonly #throttled: ThrottledReport
  readonly #watch: Watch
  #state: ThrottlerState = 'idle'
  #nodes = 1
  #generation: string | undefined
  /** The last heartbeat said that the store's clock was stepped, and the one that was answered before. */
  #saidStepped = false
  #saidBefore = false
  #degradedAt = 0
  #recoveredAt = Number.NEGATIVE_INFINITY
  #foundAt = Number.NEGATIVE_INFINITY
  #warned = new Set<string>()
  #closing: Promise<void> | undefined
  #requestRules: Rules<Req> | undefined
  /** The only policy's static cost. */
  #fixedCost = 1

  constructor(options: ThrottlerOptions<Req, Name>) {
    checkOptions(options)
    const rules = requestRules(options.policies)
    const policies = parsePolicies(rules as readonly PolicyOptions<never, Name>[])
    const { maxKeys = 250_000 } = options
    if (!Number.isInteger(maxKeys) || maxKeys < 1) throw invalidOption('maxKeys', maxKeys, 'a whole number of at least 1')
    this.#maxKeys = maxKeys
    this.#overflow = oneOf<Overflow>('overflow', options.overflow, ['shared', 'allow', 'block'])
    const heartbeat = parseDuration(options.heartbeat === undefined ? 1_000 : options.heartbeat, 'heartbeat', 100)
    if (heartbeat > 10_000) throw invalidOption('heartbeat', options.heartbeat, 'from 100 ms to 10 s')
    this.#closeTimeout = parseDuration(options.closeTimeout === undefined ? 1_000 : options.closeTimeout, 'closeTimeout', 0)
    const { random = Math.random, clock = systemClock } = options
    this.#clock = clock
    this.#store = options.store
    this.nodeId = newNodeId(random)
    const now = this.#clock.monotonic()
    this.#time = new StoreTime(this.#clock.now(), now)
    this.#localTime = new StoreTime(this.#clock.now(), now)
    this.#emitter = new Emitter(this.nodeId, (error) => reportListenerError(error))
    this.#throttled = new ThrottledReport(this.#emitter)
    this.#watch = new Watch(now)
    if (options.logger !== undefined) logEvents(options.logger, this.nodeId, (name, listener) => this.#emitter.on(name, listener))
    this.#host = this.#makeHost()
    this.#adopt(rules, policies)
    this.#loop = new SyncLoop({
      clock: this.#clock,
      random,
      counters: () => this.#counters,
      heartbeat,
      time: this.#time,
      observer: {
        succeeded: (reply, entries, sent, received) => this.#succeeded(reply, entries, sent, received),
        heartbeat: (reply, sent, received) => this.#heartbeat(reply, sent, received),
        failed: (error, entries, sent, received) => this.#failed(error, entries, sent, received),
        tick: (monotonic) => {
          this.#localTime.observe(monotonic, monotonic, this.#clock.now())
          return this.#throttled.tick(this.#counters, monotonic)
        },
        time: (monotonic, heartbeat) => this.#timeToTell(monotonic, heartbeat),
        about: (monotonic) => this.#watch.request(() => this.snapshot(), monotonic),
      },
    })
  }

  /** The policies, checked and frozen, in their order. */
  get policies(): readonly Policy<Name>[] {
    return this.#policies
  }

  /** What the policies were made from: faces read their `key`, `match` and `cost` here. The same order. */
  get rules(): readonly PolicyOptions<Req, Name>[] {
    return this.#rules
  }

  /** Grows with each `update`: what was made from `policies` or `rules` must be made anew. */
  get version(): number {
    return this.#version
  }

  /** Whether some policy is `strict`: then faces use `decideAsync`. */
  get strict(): boolean {
    return this.#strict
  }

  /** Whether the store answers: `idle` before the first decision. */
  get state(): ThrottlerState {
    return this.#state
  }

  /**
   * Decides on one request, at once, and counts it if it is allowed.
   *
   * @param subject what the request is counted by, in every policy (policies with `key: 'all'` share one counter); or a
   * request of `node:http`, from which each policy reads its key, match and cost
   * @param cost units; a bad one counts as 1, with one `warning`. Default 1, or what the policies' `cost` says of a request
   * @throws WeirError `WEIR_INVALID_KEY` when the subject is neither, `WEIR_CLOSED` after `close`
   */
  check(subject: string | Req, cost?: number): Decision<Name> {
    const counter = this.#single
    if (counter === undefined || typeof subject !== 'string' || cost !== undefined) return this.#checkSlowly(subject, cost, true)
    const now = this.#clock.monotonic()
    if (now >= counter.rollAt) this.#roll(counter, now)
    return this.#decideOne(counter, subject, this.#fixedCost, now) as Decision<Name>
  }

  /** As `check`, but nothing is counted and no cooldown starts. */
  peek(subject: string | Req, cost?: number): Decision<Name> {
    return this.#checkSlowly(subject, cost, false)
  }

  /**
   * The form that faces use: one key and one cost for each policy, in their order; `undefined` where a policy does not
   * apply. The arrays are read during the call only and may be reused.
   *
   * @param applying the places of the policies that apply, ascending, so that the others need not be looked at; of them
   * the first `applied` hold
   * @throws WeirError `WEIR_CLOSED` after `close`
   */
  decide(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied: number = applying?.length ?? 0,
  ): Decision<Name> {
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  /**
   * As `check`, but a policy with `strict` lets a request wait for the store's word near its limit: at most 50 ms, then
   * the policy's `degraded` choice decides.
   */
  async checkAsync(subject: string | Req, cost?: number): Promise<Decision<Name>> {
    const { keys, costs } = this.#fill(subject, cost)
    return this.decideAsync(keys, costs)
  }

  /** As `decide` for policies with `strict`. A promise only when a request must wait. */
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied: number = applying?.length ?? 0,
  ): Decision<Name> | Promise<Decision<Name>> {
    const asking = this.#strict ? this.#whoMustAsk(keys, costs, applying, applied) : []
    if (asking.length > 0) return this.#decideWithWord([...keys], [...costs], asking)
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  /**
   * Gives units of an allowed decision back, to the interval that they were taken from; of several policies each gets
   * its own back. Never more than the decision took.
   *
   * @param units default: all that is left of the decision's cost. Anything but a number > 0 gives nothing back, and
   * neither does a throttler that is closed.
   */
  refund(decision: Decision, units: number = Number.POSITIVE_INFINITY): void {
    if (typeof units !== 'number' || !(units > 0) || this.#state === 'closed') return
    const now = this.#clock.monotonic()
    for (const part of decision.parts) {
      if (!(part instanceof PolicyDecision) || part.policy === undefined) continue
      const back = Math.min(units, part.cost)
      const { id } = part.policy
      const counter = this.#counters.find(({ policy }) => policy.id === id)
      if (!(back > 0) || counter === undefined) continue
      part.cost -= back
      if (now >= counter.rollAt) this.#roll(counter, now)
      counter.giveBack(part.key, part.ordinal, back, now)
    }
    if (decision instanceof CombinedDecision) decision.cost = Math.max(0, decision.cost - Math.min(units, decision.cost))
  }

  /**
   * Counts more units for an allowed request, e.g. when its response shows what it really cost. They count whether or not
   * they still fit, in the running interval; give units back with `refund`.
   *
   * @param units a finite number > 0; anything else counts as nothing, with one `warning`. Nothing counts once the
   * throttler is closed.
   */
  charge(decision: Decision, units: number): void {
    if (this.#state === 'closed') return
    if (!(typeof units === 'number' && units > 0 && units < Number.POSITIVE_INFINITY)) {
      if (units !== 0)
        this.warn(
          new WeirError('WEIR_INVALID_COST', `A charge of ${show(units)} counts as nothing; it must be a finite number > 0.`),
          'charge',
        )
      return
    }
    const now = this.#now()
    for (const part of decision.parts) {
      const counter = part.policy === undefined ? undefined : this.#counterOf(part.policy.name)
      const slot = counter?.locate(part.key) ?? NO_SLOT
      if (counter === undefined || slot < 0 || !part.allowed || part.dryRun) continue
      counter.admits(slot, units, now)
      counter.take(slot, units)
    }
  }

  /**
   * Blocks a key at all nodes, whatever its counts are, for `duration` from now; replaces a block that is there.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`
   */
  block(key: string, duration: Duration, options: BlockOptions = {}): void {
    const ms = parseDuration(duration, 'duration', 1)
    const now = this.#now()
    for (const counter of this.#counterList(key, options)) {
      const slot = counter.locateAlways(key)
      counter.reconsider(slot, 1, now, false)
      counter.setBlock(slot, now + ms, true, LOCAL, UNANSWERED)
      this.#changeBlock(counter, counter.wireKey(slot), 'set', ms, now)
      this.#emitBlocked(counter, key, ms, 'manual')
    }
  }

  /**
   * Lifts the block of a key at all nodes, also one that an excess started. The key's counts stay.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`
   */
  unblock(key: string, options: BlockOptions = {}): void {
    const now = this.#now()
    for (const counter of this.#counterList(key, options)) {
      const slot = counter.table.find(key)
      const was = slot < 0 ? undefined : counter.blockOf(slot, now)
      if (was !== undefined) counter.clearBlock(slot)
      // Also where this node knows of no block: the others may.
      this.#changeBlock(counter, wireOfKey(key), 'lift', 0, now)
      if (was !== undefined && this.#emitter.has('unblocked'))
        this.#emitter.emit('unblocked', { policy: counter.policy.name, key, cause: 'manual' })
    }
  }

  /**
   * Swaps the rules while requests come in. A policy whose name, interval, window and enforcement stay the same keeps its
   * counts and blocks, whatever else changes.
   *
   * @throws WeirError as `createThrottler`; then nothing has changed. `WEIR_CLOSED` after `close`
   */
  update(policies: readonly (PolicyOptions<Req, Name> | PlannedPolicyOptions<Req, Name>)[]): void {
    if (this.#state === 'closed') throw closedError()
    const rules = requestRules(policies)
    const parsed = parsePolicies(rules as readonly PolicyOptions<never, Name>[])
    const before = this.#counters
    this.#adopt(rules, parsed)
    this.#loop.retire(before.filter((counter) => !this.#counters.includes(counter)))
    // New policies know nothing yet of what is blocked or hot.
    if (this.#counters.some((counter) => !before.includes(counter))) this.#loop.forgetCursor()
  }

  /** What this node knows right now: totals per policy, blocked keys, the keys nearest to their limits, sync health. */
  snapshot(options: SnapshotOptions = {}): Snapshot {
    const now = this.#clock.monotonic()
    const { exchanges, failed, failures, entries, lastDuration, lastError, succeededAt } = this.#sync
    const sync = {
      exchanges,
      failures: failed,
      failuresByCause: { ...failures },
      entries,
      lastDuration,
      lastError,
      sinceSuccess: succeededAt === undefined ? undefined : now - succeededAt,
      clockOffset: this.#time.at(now) - this.#clock.now(),
      clockUncertainty: this.#time.uncertainty(now),
    }
    const degradedFor = this.#state === 'degraded' ? now - this.#degradedAt : 0
    const about = { node: this.nodeId, state: this.#state, degradedFor, nodes: this.#nodes, sync }
    return this.#snapshots.make(this.#counters, now, about, options)
  }

  /**
   * The live nodes of the cluster as far as known, this one first. Asked for regularly (once a second, say), the others are
   * up to date within two heartbeats; they tell of themselves only while somebody asks.
   */
  cluster(): readonly ClusterNode[] {
    return this.#watch.nodes(this.snapshot(), this.#clock.monotonic())
  }

  /** Adds a listener; returns a function that removes it. What a listener throws becomes a process warning. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    const off = this.#emitter.on(name, listener)
    if (name === 'throttled') this.#loop.wakeNow()
    return off
  }

  /** Connects to the store and starts to exchange counts. Not needed: the first decision does it. */
  start(): this {
    if (this.#state === 'closed') throw closedError()
    if (this.#state !== 'idle') return this
    const now = this.#clock.monotonic()
    this.#state = this.#store === undefined ? 'local' : 'connecting'
    for (const counter of this.#counters) counter.roll(now)
    if (this.#store === undefined) {
      warnLocal()
      this.#loop.start(undefined)
      return this
    }
    const connection = this.#store.open({
      id: this.nodeId,
      clock: this.#clock,
      announced: (announcement) => this.#announced(announcement),
    })
    this.#loop.start(connection)
    return this
  }

  /**
   * Sends what is left, within `closeTimeout`, and closes the store's connection. Decisions after it throw
   * `WEIR_CLOSED`. Safe to call twice.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Reports something that a request must not suffer from, once per code and subject. For faces. */
  warn(error: WeirError, subject = ''): void {
    const id = `${error.code}:${subject}`
    if (this.#warned.has(id)) return
    this.#warned.add(id)
    if (this.#emitter.has('warning')) this.#emitter.emit('warning', { error })
    else warnProcess(error.code, error.message)
  }

  #adopt(rules: readonly PolicyOptions<Req, Name>[], policies: readonly Policy<Name>[]): void {
    const now = this.#clock.monotonic()
    const running = this.#state !== 'idle'
    this.#counters = policies.map((policy) => {
      const kept = this.#counters.find((counter) => counter.policy.id === policy.id)
      if (kept === undefined) {
        const made = makeCounter(policy, this.#host, this.#maxKeys, this.#overflow)
        if (running) made.roll(now)
        return made
      }
      kept.adopt(policy, now)
      // An idle throttler starts at its first decision, which it recognises by a `rollAt` in the past.
      if (!running) kept.rollAt = Number.NEGATIVE_INFINITY
      return kept
    })
    this.#single = this.#counters.length === 1 && rules[0]?.key !== 'all' ? this.#counters[0] : undefined
    this.#ownScratch = this.#newScratch()
    this.#policies = policies
    this.#rules = rules
    this.#strict = policies.some((policy) => policy.strict)
    const cost = rules[0]?.cost
    this.#fixedCost = typeof cost === 'number' ? cost : 1
    this.#requestRules = undefined
    this.#version++
  }

  async #close(): Promise<void> {
    const was = this.#state
    // All timers and sockets let a process end: it would before this is done.
    const release = this.#clock.hold?.()
    try {
      if (was === 'synced' || was === 'connecting' || was === 'degraded') await this.#loop.flush(this.#closeTimeout)
      this.#state = 'closed'
      for (const counter of this.#counters) counter.rollAt = Number.NEGATIVE_INFINITY
      await this.#loop.stop()
    } finally {
      release?.()
    }
  }

  /** Rolls a counter over, or finds out that the throttler has not started or is closed: then `rollAt` is in the past. */
  #roll(counter: Counter, now: number): void {
    if (this.#state === 'closed') throw closedError()
    if (this.#state === 'idle') this.start()
    if (now >= counter.rollAt) counter.roll(now)
  }

  #now(): number {
    const now = this.#clock.monotonic()
    for (const counter of this.#counters) if (now >= counter.rollAt) this.#roll(counter, now)
    return now
  }

  #decideOne(counter: Counter, key: string, cost: number, now: number): PolicyDecision {
    const slot = counter.locate(key)
    if (slot < 0) return this.#overflowed(counter, key, now, true)
    const { policy } = counter
    if (counter.admits(slot, cost, now)) {
      counter.take(slot, cost)
      const left = counter.remaining(slot, now)
      return new PolicyDecision(true, 'ok', policy, key, left, Math.ceil(counter.resetAfter(slot, now)), cost, counter.ordinal)
    }
    return this.#refuse(counter, slot, key, cost, now)
  }

  #refuse(counter: Counter, slot: number, key: string, cost: number, now: number): PolicyDecision {
    if (counter.isFull(slot, cost)) {
      counter.countRefusal(slot, cost, 'limit')
      const { policy, ordinal } = counter
      const wait = Math.max(1, Math.ceil(counter.rollAt - now))
      return new PolicyDecision(policy.dryRun, 'limit', policy, key, counter.remaining(slot, now), wait, 0, ordinal)
    }
    const why = counter.refuse(slot, cost, now)
    counter.countRefusal(slot, cost, why.reason)
    return refusal(counter, slot, key, why, now)
  }

  #overflowed(counter: Counter, key: string, now: number, count: boolean): PolicyDecision {
    const { policy, ordinal } = counter
    const end = Math.ceil(counter.rollAt - now)
    if (counter.overflow === 'allow' || policy.dryRun) {
      const reason = counter.overflow === 'allow' ? 'ok' : 'overflow'
      return new PolicyDecision(true, reason, policy, key, policy.limit, end, 0, ordinal)
    }
    if (count) counter.stats.countRefusal('overflow', LOCAL)
    return new PolicyDecision(false, 'overflow', policy, key, 0, Math.max(1, end), 0, ordinal)
  }

  #checkSlowly(subject: string | Req, cost: number | undefined, count: boolean): Decision<Name> {
    const { keys, costs } = this.#fill(subject, cost)
    return this.#decideAll(keys, costs, count)
  }

  #newScratch(): Scratch {
    return { slots: this.#counters.map(() => NO_SLOT), keys: this.#counters.map(() => undefined), costs: this.#counters.map(() => 1) }
  }

  /** Arrays to work with. A listener that asks for a decision while another one is being made gets others. */
  #scratch(): Scratch {
    return this.#deciding ? this.#newScratch() : this.#ownScratch
  }

  /** Keys and costs of a subject. */
  #fill(subject: string | Req, cost: number | undefined): Scratch {
    const scratch = this.#scratch()
    const { keys, costs } = scratch
    if (typeof subject === 'string') {
      for (let i = 0; i < this.#counters.length; i++) {
        const rule = this.#rules[i]
        keys[i] = rule?.key === 'all' ? 'all' : subject
        costs[i] = cost === undefined ? (typeof rule?.cost === 'number' ? rule.cost : 1) : cost
      }
      return scratch
    }
    if (typeof subject !== 'object' || subject === null) {
      throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, or a request; it is ${show(subject)}.`)
    }
    this.#requestRules ??= new Rules(this.#rules, nodeReader as unknown as RequestReader<Req>, {
      report: (error, about) => this.warn(error, about),
    })
    this.#requestRules.evaluate(subject)
    for (let i = 0; i < this.#counters.length; i++) {
      keys[i] = this.#requestRules.keys[i]
      costs[i] = cost === undefined ? (this.#requestRules.costs[i] as number) : cost
    }
    return scratch
  }

  /** The policies that would let the request pass by what is known, but are to ask the store first. */
  #whoMustAsk(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    places: readonly number[] | undefined,
    applied: number,
  ): number[] {
    const asking: number[] = []
    const now = this.#clock.monotonic()
    const end = places === undefined ? this.#counters.length : applied
    for (let at = 0; at < end; at++) {
      const i = places === undefined ? at : (places[at] as number)
      const key = keys[i]
      if (key === undefined) continue
      const counter = this.#counters[i] as Counter
      if (now >= counter.rollAt) this.#roll(counter, now)
      const slot = counter.locate(key)
      if (slot < 0) continue
      if (!counter.admits(slot, this.#costOf(costs[i], i), now)) return []
      if (!counter.policy.dryRun && counter.mustAsk(slot, now)) asking.push(i)
    }
    return asking
  }

  async #decideWithWord(keys: (string | undefined)[], costs: number[], asking: readonly number[]): Promise<Decision<Name>> {
    const before = this.#counters
    const asked = await Promise.all(
      asking.map(async (i) => {
        const counter = before[i] as Counter
        const key = keys[i] as string
        const cost = this.#costOf(costs[i], i)
        return { counter, key, cost, ...(await this.#ask(counter, key, cost)) }
      }),
    )
    const refused = asked.some(({ granted }) => granted === false)
    // Decide on the others now: what was true before the wait need not be true any more. `update` may have moved them.
    const { keys: restKeys, costs: restCosts } = this.#newScratch()
    for (const [i, counter] of before.entries()) {
      const place = this.#counters.indexOf(counter)
      if (place < 0 || asked.some((ask) => ask.counter === counter && ask.granted === true)) continue
      restKeys[place] = keys[i]
      restCosts[place] = costs[i] as number
    }
    const decision = this.#decideAll(restKeys, restCosts, !refused)
    const now = this.#clock.monotonic()
    const allowed = !refused && decision.allowed
    const parts = [...decision.parts] as PolicyDecision[]
    for (const { counter, key, cost, granted, ordinal } of asked) {
      const slot = counter.table.find(key)
      if (granted === true && !allowed) counter.giveBack(key, ordinal, cost, now)
      if (granted === true && slot >= 0) parts.push(reservedPart(counter, slot, key, allowed ? cost : 0, ordinal, now))
      if (granted === false && slot >= 0) {
        const at = parts.findIndex((part) => part.policy === counter.policy)
        if (at >= 0) parts.splice(at, 1)
        parts.push(this.#refuse(counter, slot, key, cost, now))
      }
    }
    const order = new Map(this.#policies.map((policy, i) => [policy as Policy, i]))
    parts.sort((a, b) => (order.get(a.policy as Policy) ?? 0) - (order.get(b.policy as Policy) ?? 0))
    return (parts.length === 1 ? parts[0] : new CombinedDecision(decisiveOf(parts), parts)) as Decision<Name>
  }

  /** Whether the store granted the units, undefined when it did not say so in time; and the interval that they are of. */
  #ask(counter: Counter, key: string, cost: number): Promise<{ granted: boolean | undefined; ordinal: Ordinal }> {
    return new Promise((resolve) => {
      const reservation: Reservation = {
        slot: counter.locate(key),
        cost,
        abandoned: false,
        answer: (granted, ordinal = counter.ordinal) => {
          this.#clock.clearTimeout(timer)
          resolve({ granted, ordinal })
        },
      }
      const timer = this.#clock.setTimeout(() => {
        reservation.abandoned = true
        resolve({ granted: undefined, ordinal: counter.ordinal })
      }, STRICT_DEADLINE)
      counter.reserve(reservation, this.#clock.monotonic())
    })
  }

  #decideAll(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    count: boolean,
    places?: readonly number[],
    applied = 0,
  ): Decision<Name> {
    const nested = this.#deciding
    const { slots } = this.#scratch()
    this.#deciding = true
    try {
      return this.#decideEach(keys, costs, count, slots, places, applied)
    } finally {
      this.#deciding = nested
    }
  }

  #decideEach(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    count: boolean,
    slots: number[],
    places: readonly number[] | undefined,
    applied: number,
  ): Decision<Name> {
    const counters = this.#counters
    const now = this.#clock.monotonic()
    const end = places === undefined ? counters.length : applied
    let applying = 0
    let allowed = true
    for (let at = 0; at < end; at++) {
      const i = places === undefined ? at : (places[at] as number)
      const key = keys[i]
      if (key === undefined) continue
      applying++
      const counter = counters[i] as Counter
      if (now >= counter.rollAt) this.#roll(counter, now)
      const slot = counter.locate(key)
      slots[i] = slot
      if (
        slot < 0 ? counter.overflow === 'block' && !counter.policy.dryRun : !counter.admits(slot, this.#costOf(costs[i], i), now, count)
      ) {
        if (!counter.policy.dryRun) allowed = false
        if (slot >= 0) slots[i] = -2 - slot
      }
    }
    if (applying === 0) {
      if (this.#state === 'closed') throw closedError()
      return NO_POLICY as Decision<Name>
    }
    const parts: PolicyDecision[] = []
    for (let at = 0; at < end; at++) {
      const i = places === undefined ? at : (places[at] as number)
      const key = keys[i]
      if (key === undefined) continue
      parts.push(this.#part(counters[i] as Counter, slots[i] as number, key, this.#costOf(costs[i], i), now, allowed, count))
    }
    return (parts.length === 1 ? parts[0] : new CombinedDecision(decisiveOf(parts), parts)) as Decision<Name>
  }

  /** One policy's part of a decision whose outcome is known. `slot` is below -1 where this policy refused. */
  #part(counter: Counter, slot: number, key: string, cost: number, now: number, allowed: boolean, count: boolean): PolicyDecision {
    if (slot === NO_SLOT) return this.#overflowed(counter, key, now, count)
    if (slot < 0) {
      const at = -2 - slot
      if (count) return this.#refuse(counter, at, key, cost, now)
      return refusal(counter, at, key, counter.explain(at, cost, now), now)
    }
    if (allowed && count) counter.take(slot, cost)
    const taken = allowed && count ? cost : 0
    const left = Math.max(0, counter.remaining(slot, now) - (allowed && !count ? cost : 0))
    const reset = Math.ceil(counter.resetAfter(slot, now))
    return new PolicyDecision(true, 'ok', counter.policy, key, left, reset, taken, counter.ordinal)
  }

  #costOf(cost: number | undefined, index: number): number {
    if (typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY) return cost
    this.warn(
      new WeirError('WEIR_INVALID_COST', `A cost of ${show(cost)} counts as 1; it must be a finite number > 0.`),
      this.#policies[index]?.name,
    )
    return 1
  }

  #counterOf(name: string): Counter | undefined {
    return this.#counters.find((counter) => counter.policy.name === name)
  }

  #counterList(key: string, options: BlockOptions): readonly Counter[] {
    if (typeof key !== 'string') throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, not ${show(key)}.`)
    if (options.policy === undefined) return this.#counters
    const counter = this.#counterOf(options.policy)
    if (counter === undefined) {
      const names = this.#policies.map(({ name }) => show(name)).join(', ')
      throw new WeirError('WEIR_UNKNOWN_POLICY', `There is no policy ${show(options.policy)}; there is ${names}.`)
    }
    return [counter]
  }

  #changeBlock(counter: Counter, key: string, kind: 'set' | 'lift', remaining: number, now: number): void {
    if (this.#store === undefined) return
    this.#loop.changeBlock(counter, { policy: counter.wire, key, kind, remaining }, now + remaining)
  }

  #makeHost(): CounterHost {
    const self = this
    return {
      get time() {
        return self.#time
      },
      get localTime() {
        return self.#localTime
      },
      get nodes() {
        return self.#nodes
      },
      get connected() {
        return self.#store !== undefined
      },
      get degraded() {
        return self.#loop.degraded
      },
      get recoveredAt() {
        return self.#recoveredAt
      },
      get foundAt() {
        return self.#foundAt
      },
      due: (counter, slot, at) => this.#loop.due(counter, slot, at),
      changeBlock: (counter, change, until) => this.#loop.changeBlock(counter, change, until),
      blocked: (counter, key, forMs, cause) => this.#emitBlocked(counter, key, forMs, cause),
      unblocked: (counter, key, cause) => {
        if (this.#emitter.has('unblocked')) this.#emitter.emit('unblocked', { policy: counter.policy.name, key, cause })
      },
      overflow: (counter) => {
        if (this.#emitter.has('overflow')) this.#emitter.emit('overflow', { policy: counter.policy.name, maxKeys: counter.maxKeys })
      },
    }
  }

  #emitBlocked(counter: Counter, key: string, forMs: number, cause: BlockCause): void {
    counter.stats.blocks[cause]++
    if (this.#emitter.has('blocked')) this.#emitter.emit('blocked', { policy: counter.policy.name, key, for: forMs, cause })
  }

  #announced(announcement: Announcement, roundTrip?: number, source: SourceIndex = ANNOUNCED): void {
    if (this.#state === 'closed') return
    const now = this.#clock.monotonic()
    const id = announcement.policyId
    for (const counter of this.#counters) {
      if (counter.wire.id !== id) continue
      if (now >= counter.rollAt) counter.roll(now)
      if (announcement.type === 'total') counter.announced(announcement, now)
      else {
        const slot = announcement.remaining > 0 ? counter.locateWire(announcement.key) : counter.findWire(announcement.key)
        if (slot >= 0) counter.blockRemotely(slot, announcement.remaining, now, roundTrip, source)
      }
    }
  }

  #timeToTell(now: number, heartbeat: boolean): number | undefined {
    const stepped = this.#time.stepped(now)
    if (heartbeat) this.#saidStepped = stepped
    return stepped || (heartbeat && this.#time.measured) ? this.#time.at(now) : undefined
  }

  #succeeded({ time, heartbeat }: SyncReply, entries: number, sent: number, received: number): void {
    const first = !this.#time.measured
    // The store had heard of a step from this node before; another one has said since that there is none.
    if (heartbeat !== undefined && heartbeat.ahead === undefined && this.#saidBefore) this.#time.catchUp(received)
    if (heartbeat !== undefined) this.#saidBefore = this.#saidStepped
    this.#time.observe(sent, received, time, heartbeat?.ahead)
    for (const counter of this.#counters) {
      if (first) counter.adoptTime(received)
      else counter.roll(received)
    }
    this.#sync.succeed(entries, received - sent, received)
    if (this.#emitter.has('sync')) this.#emitter.emit('sync', { entries, duration: received - sent })
    if (first && this.#state === 'connecting') this.#state = 'synced'
    if (this.#loop.degraded) this.#recovered(sent, received)
  }

  #recovered(sent: number, now: number): void {
    this.#loop.degraded = false
    this.#state = 'synced'
    this.#recoveredAt = now
    this.#foundAt = sent
    this.#invalidate(now, true)
    // What was counted meanwhile, and what was under way when the store went away.
    this.#loop.scanAll({ all: false, resend: false })
    if (this.#emitter.has('recovered')) this.#emitter.emit('recovered', { after: now - this.#degradedAt })
  }

  #failed(error: unknown, entries: number, sent: number, received: number): void {
    const cause = this.#sync.fail(error)
    if (this.#emitter.has('sync-failed')) this.#emitter.emit('sync-failed', { entries, duration: received - sent, cause, error })
    if (this.#loop.degraded || this.#state === 'closed') return
    this.#loop.degraded = true
    this.#state = 'degraded'
    this.#degradedAt = received
    this.#invalidate(received, true)
    if (this.#emitter.has('degraded')) this.#emitter.emit('degraded', { cause: error })
    else {
      // A mistyped address of the store must not go unnoticed because nobody listens.
      const why = error instanceof Error ? error.message : show(error)
      const message = `The store does not answer (${why}). Until it does, each policy goes on by its "degraded" choice. Listen to "degraded" to hear of each time.`
      this.warn(new WeirError('WEIR_STORE_UNAVAILABLE', message, { cause: error }))
    }
  }

  #heartbeat(reply: HeartbeatReply, sent: number, received: number): void {
    this.#watch.heard(reply, received)
    // A registry that was lost, or ran out during an outage, fills up again within a heartbeat; were it believed at once,
    // the first nodes to be back would think that they are alone.
    const filling = received < this.#recoveredAt + SETTLE || (this.#generation !== undefined && this.#generation !== reply.generation)
    const nodes = filling ? Math.max(reply.nodes, this.#nodes) : reply.nodes
    if (nodes !== this.#nodes && nodes >= 1) {
      const before = this.#nodes
      this.#nodes = nodes
      this.#invalidate(received, false)
      if (this.#emitter.has('nodes')) this.#emitter.emit('nodes', { nodes, before })
    }
    for (const block of reply.blocks) this.#announced({ type: 'block', ...block }, received - sent, GLOBAL)
    for (const total of reply.hot) this.#announced(total)
    if (this.#generation !== undefined && this.#generation !== reply.generation) this.#storeLostData(received)
    this.#generation = reply.generation
  }

  /** Counts and blocks that the store held are gone there, not here. */
  #storeLostData(now: number): void {
    this.#loop.scanAll({ all: false, resend: true })
    for (const counter of this.#counters) {
      for (const [slot, { until }] of counter.blocks) {
        if (until <= now) continue
        const change = { policy: counter.wire, key: counter.wireKey(slot), kind: 'restore', remaining: until - now } as const
        this.#loop.changeBlock(counter, change, until)
      }
    }
  }

  #invalidate(now: number, amnesty: boolean): void {
    for (const counter of this.#counters) {
      counter.invalidate(now)
      if (amnesty) counter.amnesty = counter.ordinal
    }
  }
}

function refusal(counter: Counter, slot: number, key: string, { reason, retryAfter }: Refusal, now: number): PolicyDecision {
  const { policy } = counter
  const wait = Math.max(1, Math.ceil(retryAfter))
  return new PolicyDecision(policy.dryRun, reason, policy, key, counter.remaining(slot, now), wait, 0, counter.ordinal)
}

/** The part of a policy whose units the store has granted; they are counted already, in the interval `ordinal`. */
function reservedPart(counter: Counter, slot: number, key: string, cost: number, ordinal: Ordinal, now: number): PolicyDecision {
  const end = Math.ceil(counter.resetAfter(slot, now))
  return new PolicyDecision(true, 'ok', counter.policy, key, counter.remaining(slot, now), end, cost, ordinal)
}

/** A request waits for the store's word at most this long, in milliseconds. */
const STRICT_DEADLINE = 50

/** Arrays with one item for each policy. */
interface Scratch {
  readonly slots: number[]
  readonly keys: (string | undefined)[]
  readonly costs: number[]
}

function closedError(): WeirError {
  return new WeirError('WEIR_CLOSED', 'The throttler is closed.')
}

let saidLocal = false

function warnLocal(): void {
  if (saidLocal) return
  saidLocal = true
  warnProcess(
    'WEIR_LOCAL_ONLY',
    'This throttler has no store, so it limits this process alone. Give it a store such as redisStore(...), or memoryStore() to say that this is meant.',
  )
}

function reportListenerError(error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  warnProcess('WEIR_LISTENER', `A listener of a throttler threw: ${message}`)
}
