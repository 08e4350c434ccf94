import { type Clock, systemClock } from './clock.ts'
import { type Counter, type CounterHost, NO_SLOT, UNANSWERED, wireOfKey } from './counter.ts'
import { type BlockCause, LOCAL } from './counter-stats.ts'
import { combined, type Decision, NO_POLICY, PolicyDecision } from './decision.ts'
import { type Duration, parseDuration } from './duration.ts'
import { invalidOption, show, WeirError, warnProcess } from './errors.ts'
import { Emitter, type EventName, type Listener } from './events.ts'
import { ALL_KEY } from './http/key-source.ts'
import { nodeReader } from './http/node-reader.ts'
import type { PlannedPolicyOptions } from './http/plans.ts'
import type { RequestReader } from './http/reader.ts'
import { Rules } from './http/rules.ts'
import { logEvents } from './logger.ts'
import { makeCounter } from './make-counter.ts'
import type { ClusterNode } from './node-status.ts'
import { oneOf, parsePolicies } from './parse-policy.ts'
import type { Policy, PolicyOptions } from './policy.ts'
import { decideOne, partOf, refusedSlot } from './policy-part.ts'
import { type Snapshot, SnapshotMaker, type SnapshotOptions } from './snapshot.ts'
import type { Store } from './store.ts'
import { StoreState, type ThrottlerState } from './store-state.ts'
import { StoreTime } from './store-time.ts'
import { StrictDecisions } from './strict-decisions.ts'
import { SyncLoop } from './sync-loop.ts'
import { ThrottledReport } from './throttled-report.ts'
import { checkOptions, newNodeId, type Overflow, requestRules, type ThrottlerOptions } from './throttler-options.ts'

/** Which policies a block is of. */
export interface BlockOptions {
  /** A policy's name. Default: all policies. */
  readonly policy?: string
}

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
  readonly #link: StoreState
  readonly #strictly: StrictDecisions
  readonly #localTime: StoreTime
  readonly #closeTimeout: number
  /** The places of all policies. */
  #places: readonly number[] = []
  /** The place of a request's key in each counter, while it is decided about. */
  #slots: number[] = []
  #deciding = false
  readonly #snapshots = new SnapshotMaker()
  readonly #throttled: ThrottledReport
  #warned = new Set<string>()
  #closing: Promise<void> | undefined
  #requestRules: Rules<Req> | undefined
  /** For each policy whether all requests share one counter, and what a request costs that nobody says the cost of. */
  #shared: readonly boolean[] = []
  #costs: readonly number[] = []
  /** The only policy's cost. */
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
    this.#localTime = new StoreTime(this.#clock.now(), now)
    this.#emitter = new Emitter(this.nodeId, (error) => reportListenerError(error))
    this.#throttled = new ThrottledReport(this.#emitter)
    if (options.logger !== undefined) logEvents(options.logger, this.nodeId, (name, listener) => this.#emitter.on(name, listener))
    const self = this
    this.#link = new StoreState({
      clock,
      emitter: this.#emitter,
      get counters() {
        return self.#counters
      },
      get loop() {
        return self.#loop
      },
      warn: (error) => this.warn(error),
    })
    this.#strictly = new StrictDecisions({
      clock,
      get counters() {
        return self.#counters
      },
      roll: (counter, at) => this.#roll(counter, at),
      costOf: (cost, index) => this.#costOf(cost, index),
      decide: (keys, costs, count) => this.#decideAll(keys, costs, count),
    })
    this.#host = this.#makeHost()
    this.#adopt(rules, policies)
    this.#loop = new SyncLoop({
      clock: this.#clock,
      random,
      counters: () => this.#counters,
      heartbeat,
      time: this.#link.time,
      observer: {
        succeeded: (reply, entries, sent, received) => this.#link.succeeded(reply, entries, sent, received),
        heartbeat: (reply, sent, received) => this.#link.heartbeat(reply, sent, received),
        failed: (error, entries, sent, received) => this.#link.failed(error, entries, sent, received),
        tick: (monotonic) => {
          this.#localTime.observe(monotonic, monotonic, this.#clock.now())
          return this.#throttled.tick(this.#counters, monotonic)
        },
        silence: (silent, now) => this.#link.silence(silent, now),
        time: (monotonic, heartbeat) => this.#link.timeToTell(monotonic, heartbeat),
        about: (monotonic) => this.#link.watch.request(() => this.snapshot(), monotonic),
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
    return this.#link.state
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
    if (counter === undefined || typeof subject !== 'string') return this.#checkEach(subject, cost, true)
    const now = this.#clock.monotonic()
    if (now >= counter.rollAt) this.#roll(counter, now)
    return decideOne(counter, subject, cost === undefined ? this.#fixedCost : this.#costOf(cost, 0), now) as Decision<Name>
  }

  /** As `check`, but nothing is counted and no cooldown starts. */
  peek(subject: string | Req, cost?: number): Decision<Name> {
    return this.#checkEach(subject, cost, false)
  }

  /**
   * The form that faces use: one key and one cost for each policy, in their order; `undefined` where a policy does not
   * apply. The arrays are read during the call only and may be reused.
   *
   * @param applying the places of the policies that apply, ascending, so that the others need not be looked at; of them
   * the first `applied` hold
   * @throws WeirError `WEIR_CLOSED` after `close`
   */
  decide(keys: readonly (string | undefined)[], costs: readonly number[], applying?: readonly number[], applied?: number): Decision<Name> {
    if (applied === 1 && applying !== undefined) {
      const place = applying[0] as number
      const key = keys[place]
      const counter = this.#counters[place]
      if (key !== undefined && counter !== undefined) {
        const now = this.#clock.monotonic()
        if (now >= counter.rollAt) this.#roll(counter, now)
        return decideOne(counter, key, this.#costOf(costs[place], place), now) as Decision<Name>
      }
    }
    return this.#decideAll(keys, costs, true, applying, applied)
  }

  /**
   * As `check`, but a policy with `strict` lets a request wait for the store's word near its limit: at most 50 ms, then
   * the policy's `degraded` choice decides.
   */
  async checkAsync(subject: string | Req, cost?: number): Promise<Decision<Name>> {
    if (typeof subject !== 'string') {
      const { keys, costs } = this.#read(subject, cost)
      return this.decideAsync(keys, costs)
    }
    const keys = this.#shared.map((shared) => (shared ? ALL_KEY : subject))
    return this.decideAsync(keys, this.#costsOf(cost))
  }

  /** As `decide` for policies with `strict`. A promise only when a request must wait. */
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
  ): Decision<Name> | Promise<Decision<Name>> {
    const asking = this.#strict ? this.#strictly.whoMustAsk(keys, costs, applying ?? this.#places, applied) : []
    if (asking.length > 0) return this.#strictly.decide([...keys], [...costs], asking) as Promise<Decision<Name>>
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
    if (typeof units !== 'number' || !(units > 0) || this.#link.state === 'closed') return
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
  }

  /**
   * Counts more units for an allowed request, e.g. when its response shows what it really cost. They count whether or not
   * they still fit, in the running interval; give units back with `refund`.
   *
   * @param units a finite number > 0; anything else counts as nothing, with one `warning`. Nothing counts once the
   * throttler is closed.
   */
  charge(decision: Decision, units: number): void {
    if (this.#link.state === 'closed') return
    if (!isCost(units)) {
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
    if (this.#link.state === 'closed') throw closedError()
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
    const { exchanges, failed, failures, entries, lastDuration, lastError, succeededAt } = this.#link.sync
    const sync = {
      exchanges,
      failures: failed,
      failuresByCause: { ...failures },
      entries,
      lastDuration,
      lastError,
      sinceSuccess: succeededAt === undefined ? undefined : now - succeededAt,
      clockOffset: this.#link.time.at(now) - this.#clock.now(),
      clockUncertainty: this.#link.time.uncertainty(now),
    }
    const degradedFor = this.#link.state === 'degraded' ? now - this.#link.degradedAt : 0
    const about = { node: this.nodeId, state: this.#link.state, degradedFor, nodes: this.#link.nodes, sync }
    return this.#snapshots.make(this.#counters, now, about, options)
  }

  /**
   * The live nodes of the cluster as far as known, this one first. Asked for regularly (once a second, say), the others are
   * up to date within two heartbeats; they tell of themselves only while somebody asks.
   */
  cluster(): readonly ClusterNode[] {
    return this.#link.watch.nodes(this.snapshot(), this.#clock.monotonic())
  }

  /** Adds a listener; returns a function that removes it. What a listener throws becomes a process warning. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    const off = this.#emitter.on(name, listener)
    if (name === 'throttled') this.#loop.wakeNow()
    return off
  }

  /** Connects to the store and starts to exchange counts. Not needed: the first decision does it. */
  start(): this {
    if (this.#link.state === 'closed') throw closedError()
    if (this.#link.state !== 'idle') return this
    const now = this.#clock.monotonic()
    this.#link.state = this.#store === undefined ? 'local' : 'connecting'
    for (const counter of this.#counters) counter.roll(now)
    if (this.#store === undefined) {
      warnLocal()
      this.#loop.start(undefined)
      return this
    }
    const connection = this.#store.open({
      id: this.nodeId,
      clock: this.#clock,
      announced: (announcement) => this.#link.announced(announcement),
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
    const running = this.#link.state !== 'idle'
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
    this.#single = this.#counters.length === 1 && rules[0]?.key !== ALL_KEY ? this.#counters[0] : undefined
    this.#slots = this.#counters.map(() => NO_SLOT)
    this.#places = this.#slots.map((_, place) => place)
    this.#policies = policies
    this.#rules = rules
    this.#strict = policies.some((policy) => policy.strict)
    this.#shared = rules.map(({ key }) => key === ALL_KEY)
    this.#costs = rules.map(({ cost }) => (typeof cost === 'number' ? cost : 1))
    this.#fixedCost = this.#costs[0] ?? 1
    this.#requestRules = undefined
    this.#version++
  }

  async #close(): Promise<void> {
    const was = this.#link.state
    const begun = this.#clock.monotonic()
    // All timers and sockets let a process end: it would before this is done.
    const release = this.#clock.hold?.()
    try {
      if (was === 'synced' || was === 'connecting' || was === 'degraded') await this.#loop.flush(this.#closeTimeout)
      this.#link.state = 'closed'
      for (const counter of this.#counters) counter.rollAt = Number.NEGATIVE_INFINITY
      await this.#loop.stop(Math.max(LEAVE, this.#closeTimeout - (this.#clock.monotonic() - begun)))
    } finally {
      release?.()
    }
  }

  /** Rolls a counter over, or finds out that the throttler has not started or is closed: then `rollAt` is in the past. */
  #roll(counter: Counter, now: number): void {
    if (this.#link.state === 'closed') throw closedError()
    if (this.#link.state === 'idle') this.start()
    if (now >= counter.rollAt) counter.roll(now)
  }

  #now(): number {
    const now = this.#clock.monotonic()
    for (const counter of this.#counters) if (now >= counter.rollAt) this.#roll(counter, now)
    return now
  }

  #checkEach(subject: string | Req, cost: number | undefined, count: boolean): Decision<Name> {
    if (typeof subject === 'string') return this.#decideAll(subject, this.#costsOf(cost), count)
    const { keys, costs } = this.#read(subject, cost)
    return this.#decideAll(keys, costs, count)
  }

  /** A cost for each policy: the given one, or its own. */
  #costsOf(cost: number | undefined): readonly number[] {
    return cost === undefined ? this.#costs : this.#costs.map(() => cost)
  }

  /** A key and a cost for each policy, as its rule finds them in a request. */
  #read(request: Req, cost: number | undefined): { keys: readonly (string | undefined)[]; costs: readonly number[] } {
    if (typeof request !== 'object' || request === null) {
      throw new WeirError('WEIR_INVALID_KEY', `A key must be a string, or a request; it is ${show(request)}.`)
    }
    this.#requestRules ??= new Rules(this.#rules, nodeReader as unknown as RequestReader<Req>, {
      report: (error, about) => this.warn(error, about),
    })
    this.#requestRules.evaluate(request)
    // Copies, since a listener may ask about another request while this one is decided about.
    const { keys, costs } = this.#requestRules
    return { keys: [...keys], costs: cost === undefined ? [...costs] : this.#costsOf(cost) }
  }

  /**
   * @param keys a key for each policy, or one for all of them
   * @param places those of the policies that apply, of which the first `applied` hold
   */
  #decideAll(
    keys: string | readonly (string | undefined)[],
    costs: readonly number[],
    count: boolean,
    places: readonly number[] = this.#places,
    applied: number = places.length,
  ): Decision<Name> {
    const nested = this.#deciding
    // A listener that asks for a decision while another one is being made must not change its slots.
    const slots = nested ? [] : this.#slots
    this.#deciding = true
    try {
      const counters = this.#counters
      const now = this.#clock.monotonic()
      let applying = 0
      let allowed = true
      for (let at = 0; at < applied; at++) {
        const i = places[at] as number
        const key = this.#keyOf(keys, i)
        if (key === undefined) continue
        applying++
        const counter = counters[i] as Counter
        if (now >= counter.rollAt) this.#roll(counter, now)
        const slot = this.#shared[i] === true ? counter.locateAgain(key) : counter.locate(key)
        slots[i] = slot
        if (!isCost(costs[i])) costs = costs.with(i, this.#costOf(costs[i], i))
        if (slot < 0 ? counter.overflow === 'block' : !counter.admits(slot, costs[i] as number, now, count)) {
          if (!counter.policy.dryRun) allowed = false
          if (slot >= 0) slots[i] = refusedSlot(slot)
        }
      }
      if (applying === 0) {
        if (this.#link.state === 'closed') throw closedError()
        return NO_POLICY as Decision<Name>
      }
      const parts: PolicyDecision[] = new Array(applying)
      for (let at = 0, made = 0; made < applying; at++) {
        const i = places[at] as number
        const key = this.#keyOf(keys, i)
        if (key === undefined) continue
        parts[made++] = partOf(counters[i] as Counter, slots[i] as number, key, costs[i] as number, now, allowed, count)
      }
      return combined(parts) as Decision<Name>
    } finally {
      this.#deciding = nested
    }
  }

  #keyOf(keys: string | readonly (string | undefined)[], place: number): string | undefined {
    return typeof keys !== 'string' ? keys[place] : this.#shared[place] === true ? ALL_KEY : keys
  }

  #costOf(cost: number | undefined, index: number): number {
    if (isCost(cost)) return cost
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
        return self.#link.time
      },
      get localTime() {
        return self.#localTime
      },
      get nodes() {
        return self.#link.nodes
      },
      get connected() {
        return self.#store !== undefined
      },
      get degraded() {
        return self.#loop.degraded
      },
      get silent() {
        return self.#loop.silent
      },
      get recoveredAt() {
        return self.#link.recoveredAt
      },
      get foundAt() {
        return self.#link.foundAt
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
}

/** To say goodbye to the store a throttler has this time at least, in milliseconds, however little was left of `closeTimeout`. */
const LEAVE = 100

function closedError(): WeirError {
  return new WeirError('WEIR_CLOSED', 'The throttler is closed.')
}

function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY
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
