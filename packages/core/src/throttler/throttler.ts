import type { Meter } from '../algorithms/meter.ts'
import type { Exchanging, SharedSite } from '../algorithms/shared/site.ts'
import { parsePolicies } from '../decide/check-policy.ts'
import { type CheckOptions, RequestPath } from '../decide/decide-several.ts'
import type { Decision } from '../decide/decision.ts'
import { Limiter, type LimiterEvents } from '../decide/limiter.ts'
import { expandPlans, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { LABEL } from '../inspect/cluster.ts'
import { type ClusterNode, statusOf } from '../inspect/node-status.ts'
import { type Snapshot, SnapshotMaker, type SnapshotOptions } from '../inspect/snapshot.ts'
import { isCost, MOST_UNITS } from '../keys/units.ts'
import { closedError, show, WeirError, warnProcess } from '../report/errors.ts'
import { Emitter, type EventName, type Listener } from '../report/events.ts'
import { logEvents } from '../report/logger.ts'
import { Once } from '../report/once.ts'
import { stackOf } from '../report/show.ts'
import type { NoAnswer } from '../report/user-function.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { Duration } from '../time/duration.ts'
import type { Coordinated, Coordinator, ThrottlerState } from './coordinator.ts'
import { LocalMeters, Ticker } from './local.ts'
import { type BlockOptions, ManualBlocks } from './manual-blocks.ts'
import { newNodeId } from './node-id.ts'
import { type ThrottlerOptions, type ThrottlerSettings, throttlerSettings } from './options.ts'
import { charge, refund } from './refunds.ts'
import { ThrottledReport } from './throttled-report.ts'

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
  /** Its time and timers, by which adapters wait. */
  readonly clock: Clock
  readonly #settings: ThrottlerSettings
  readonly #emitter: Emitter
  readonly #coordinator: Coordinator | undefined
  readonly #ownId: string
  readonly #self: Coordinated
  readonly #local: LocalMeters
  /** Where nothing else keeps time. */
  readonly #ticker: Ticker
  readonly #events: LimiterEvents
  readonly #path: RequestPath<Name>
  readonly #blocks: ManualBlocks
  readonly #snapshots = new SnapshotMaker()
  readonly #throttled: ThrottledReport
  readonly #startedAt: number
  #state: 'idle' | 'running' | 'closed' = 'idle'
  #policies: readonly Policy<Name>[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  #version = 0
  #limiters: readonly Limiter[] = []
  #exchanging: readonly Exchanging[] = []
  #alone: readonly Meter[] = []
  /** Those that an update has taken out, and when: one that comes back soon must go on with its counts, which only grow. */
  #retired: readonly { readonly limiter: Limiter; readonly at: number }[] = []
  readonly #warned = new Once()
  #closing: Promise<void> | undefined

  constructor(options: ThrottlerOptions<Req, Name>) {
    const settings = throttlerSettings(options)
    const { random = Math.random, clock = systemClock, store, logger } = options
    const rules = expandPlans<Req>(options.policies) as readonly PolicyOptions<Req, Name>[]
    const policies = parsePolicies(rules as readonly PolicyOptions<never, Name>[], store !== undefined)
    this.#settings = settings
    this.clock = clock
    this.#startedAt = clock.monotonic()
    this.#local = new LocalMeters(clock)
    this.#ticker = new Ticker(clock, (now) => this.#tick(now))
    this.#self = {
      emitter: new Emitter(reportListenerError),
      meters: () => this.#exchanging,
      tick: (now) => this.#tick(now),
      warn: (error, subject) => this.warn(error, subject),
      snapshot: () => this.snapshot(),
    }
    const policyIds = policies.map(({ id }) => id)
    this.#coordinator = store?.coordinate({ clock, random, heartbeat: settings.heartbeat, throttler: this.#self, policyIds })
    this.#ownId = newNodeId(random)
    const emitter = this.#self.emitter
    emitter.node = this.nodeId
    this.#emitter = emitter
    this.#throttled = new ThrottledReport(emitter)
    if (logger !== undefined)
      logEvents(
        logger,
        () => this.nodeId,
        (name, listener) => emitter.on(name, listener),
      )
    this.#events = {
      blocked: ({ policy }, key, forMs, cause) => {
        if (emitter.has('blocked')) emitter.emit('blocked', { policy: policy.name, key, for: forMs, cause })
      },
      unblocked: ({ policy }, key, cause) => {
        if (emitter.has('unblocked')) emitter.emit('unblocked', { policy: policy.name, key, cause })
      },
      overflow: ({ policy, maxKeys }) => {
        if (emitter.has('overflow')) emitter.emit('overflow', { policy: policy.name, maxKeys })
      },
    }
    const self = this
    this.#path = new RequestPath({
      clock,
      get closed() {
        return self.#state === 'closed'
      },
      roll: (limiter, now) => this.#roll(limiter, now),
      strictly: this.#coordinator?.strictly,
      warn: (error, subject) => this.warn(error, subject),
    })
    this.#blocks = new ManualBlocks({ limiters: () => this.#limiters, now: () => this.#now() })
    this.#adopt(rules, policies)
  }

  /** Unique to this start; throttlers that share a store's value are one node. */
  get nodeId(): string {
    return this.#coordinator?.nodeId ?? this.#ownId
  }

  /** The policies, checked and frozen, in their order. */
  get policies(): readonly Policy<Name>[] {
    return this.#policies
  }

  /** What the policies were made from: adapters read their `key`, `match` and `cost` here. The same order. */
  get rules(): readonly PolicyOptions<Req, Name>[] {
    return this.#rules
  }

  /** Grows with each `update`: what was made from `policies` or `rules` must be made anew. */
  get version(): number {
    return this.#version
  }

  /** Whether some policy is `strict`: then adapters use `decideAsync`. */
  get strict(): boolean {
    return this.#path.strict
  }

  /** Whether the store answers: `idle` before the first decision. */
  get state(): ThrottlerState {
    return this.#state === 'running' ? (this.#coordinator?.state ?? 'local') : this.#state
  }

  /**
   * Decides on one request, at once, and counts it if it is allowed.
   *
   * @param key what the request is counted by, in every policy (policies with `key: 'all'` share one counter). From requests
   * an adapter, or a guard of `createGuard`, reads it
   * @param options the cost, or `{ cost, limit }`. A bad cost counts as 1, a bad limit as none, each with one `warning`
   * @throws WeirError `WEIR_INVALID_KEY` when the key is no string, `WEIR_CLOSED` after `close`
   */
  check(key: string, options?: number | CheckOptions): Decision<Name> {
    return this.#path.check(key, options)
  }

  /** As `check`, but nothing is counted and no cooldown starts. */
  peek(key: string, options?: number | CheckOptions): Decision<Name> {
    return this.#path.peek(key, options)
  }

  /**
   * The form that adapters use: one key and one cost for each policy, in their order; `undefined` where a policy does not
   * apply. The arrays are read during the call only and may be reused.
   *
   * @param applying the places of the policies that apply, ascending, so that the others need not be looked at; of them
   * the first `applied` hold
   * @throws WeirError `WEIR_CLOSED` after `close`
   */
  decide(keys: readonly (string | undefined)[], costs: readonly number[], applying?: readonly number[], applied?: number): Decision<Name> {
    return this.#path.decide(keys, costs, applying, applied)
  }

  /**
   * As `check`, but a policy with `strict` lets a request wait for the store near its limit: at most 50 ms, then
   * the policy's `degraded` choice decides. Functions that read the request may answer within 1 s.
   */
  checkAsync(key: string, options?: number | CheckOptions): Promise<Decision<Name>> {
    return this.#path.checkAsync(key, options)
  }

  /** As `decide` for policies with `strict`. A promise only when a request must wait. */
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
  ): Decision<Name> | Promise<Decision<Name>> {
    return this.#path.decideAsync(keys, costs, applying, applied)
  }

  /**
   * Refunds units of an allowed decision, to the interval that they were taken from; of several policies, at each one its
   * own. Never more than the decision took.
   *
   * @param units default: all that is left of the decision's cost. Anything but a number > 0 refunds nothing, and
   * neither does a throttler that is closed.
   */
  refund(decision: Decision, units: number = Number.POSITIVE_INFINITY): void {
    if (typeof units !== 'number' || !(units > 0) || this.#state === 'closed') return
    refund(decision, units, this.#limiters, this.clock.monotonic(), (limiter, now) => this.#roll(limiter, now))
  }

  /**
   * Counts more units for an allowed request, e.g. when its response shows what it really cost. They count whether or not
   * they still fit, in the running interval; `refund` takes units back.
   *
   * @param units a finite number > 0; anything else counts as nothing, with one `warning`. Nothing counts once the
   * throttler is closed.
   */
  charge(decision: Decision, units: number): void {
    if (this.#state === 'closed') return
    if (!isCost(units)) {
      if (units !== 0)
        this.warn(
          new WeirError('WEIR_INVALID_COST', `A charge of ${show(units)} counts as nothing; it must be a finite number > 0.`),
          'charge',
        )
      return
    }
    charge(decision, Math.min(units, MOST_UNITS), this.#limiters, this.#now())
  }

  /**
   * Blocks a key at all nodes, whatever its counts are, for `duration` from now; replaces a block that is there.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`
   */
  block(key: string, duration: Duration, options: BlockOptions = {}): void {
    this.#blocks.block(key, duration, options)
  }

  /**
   * Lifts the block of a key at all nodes, also one that exceeding the limit started. The key's counts stay.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`
   */
  unblock(key: string, options: BlockOptions = {}): void {
    this.#blocks.unblock(key, options)
  }

  /**
   * Swaps the rules while requests come in. A policy whose name, interval, algorithm and coordination stay the same
   * keeps its counts and blocks, whatever else changes.
   *
   * @throws WeirError as `createThrottler`; then nothing has changed. `WEIR_CLOSED` after `close`
   */
  update(policies: readonly (PolicyOptions<Req, Name> | PlannedPolicyOptions<Req, Name>)[]): void {
    if (this.#state === 'closed') throw closedError()
    const rules = expandPlans<Req>(policies) as readonly PolicyOptions<Req, Name>[]
    const parsed = parsePolicies(rules as readonly PolicyOptions<never, Name>[], this.#coordinator !== undefined)
    const ids = parsed.map(({ id }) => id)
    if (this.#coordinator?.serves(this.#self, ids) === false) {
      throw new WeirError(
        'WEIR_DUPLICATE_POLICY',
        'A policy has the name, algorithm, coordination and interval of one of another throttler with the same store; give it a "name" of its own.',
      )
    }
    const before = this.#exchanging
    this.#adopt(rules, parsed)
    this.#coordinator?.retire(before.filter((meter) => !this.#exchanging.includes(meter)))
    if (this.#exchanging.some((meter) => !before.includes(meter))) this.#coordinator?.welcome()
    if (this.#coordinator === undefined && this.#state === 'running') this.#ticker.wake()
  }

  /** What this node knows right now: totals per policy, blocked keys, the keys nearest to their limits, sync health. */
  snapshot(options: SnapshotOptions = {}): Snapshot {
    const now = this.clock.monotonic()
    const link = this.#coordinator?.about(now) ?? NO_STORE
    const about = { ...link, node: this.nodeId, state: this.state }
    return this.#snapshots.make(this.#limiters, now, about, options)
  }

  /**
   * The live nodes of the cluster as far as known, this one first. Asked for regularly (once a second, say), the others are
   * up to date within two heartbeats; they tell of themselves only while somebody asks.
   */
  cluster(): readonly ClusterNode[] {
    const now = this.clock.monotonic()
    if (this.#coordinator !== undefined && this.#state === 'running') return this.#coordinator.cluster(now)
    return [{ ...statusOf(this.snapshot(), LABEL, now - this.#startedAt), age: 0, self: true }]
  }

  /** Adds a listener; returns a function that removes it. What a listener throws becomes a process warning. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    const off = this.#emitter.on(name, listener)
    if (name === 'throttled' && this.#state === 'running') this.#wake()
    return off
  }

  /** Connects to the store and starts to exchange counts. Not needed: the first decision does it. */
  start(): this {
    if (this.#state === 'closed') throw closedError()
    if (this.#state !== 'idle') return this
    this.#state = 'running'
    const now = this.clock.monotonic()
    for (const { meter } of this.#limiters) meter.roll(now)
    if (this.#coordinator === undefined) {
      if (this.#rules.some(({ coordination }) => coordination !== 'local')) warnLocal()
      this.#ticker.wake()
    } else {
      this.#coordinator.join(this.#self)
      this.#emitter.node = this.nodeId
    }
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

  /** Reports something that a request must not suffer from, once per code and subject. For adapters. */
  warn(error: WeirError, subject = ''): void {
    if (this.#warned.first(`${error.code}:${subject}`)) this.#report(error)
  }

  #report(error: WeirError): void {
    if (this.#emitter.has('warning')) this.#emitter.emit('warning', { error })
    else warnProcess(error.code, error.message)
  }

  #adopt(rules: readonly PolicyOptions<Req, Name>[], policies: readonly Policy<Name>[]): void {
    const now = this.clock.monotonic()
    const running = this.#state !== 'idle'
    const before = this.#limiters
    const retired = this.#retired.filter(({ limiter, at }) => now - at < KEPT_INTERVALS * limiter.policy.interval)
    const known = [...before, ...retired.map(({ limiter }) => limiter)]
    this.#limiters = policies.map((policy) => {
      const kept = known.find((limiter) => limiter.policy.id === policy.id)
      if (kept === undefined) {
        const made = this.#limiterOf(policy)
        if (running) made.meter.roll(now)
        return made
      }
      kept.adopt(policy, now)
      // An idle throttler starts at its first decision, which it recognises by a `rollAt` in the past.
      if (!running) kept.meter.rollAt = Number.NEGATIVE_INFINITY
      return kept
    })
    const gone = before.filter((limiter) => !this.#limiters.includes(limiter)).map((limiter) => ({ limiter, at: now }))
    this.#retired = [...retired.filter(({ limiter }) => !this.#limiters.includes(limiter)), ...gone]
    const shared = this.#limiters.filter(({ policy }) => policy.coordination !== 'local')
    this.#exchanging = shared.map(({ meter }) => meter as Exchanging)
    this.#alone = this.#limiters.filter((limiter) => !shared.includes(limiter)).map(({ meter }) => meter)
    this.#path.adopt(rules, this.#limiters)
    this.#policies = policies
    this.#rules = rules
    this.#version++
  }

  #limiterOf(policy: Policy<Name>): Limiter {
    const { algorithm, coordination } = policy
    const exchange = coordination === 'local' ? this.#local.exchange : (this.#coordinator as Coordinator).exchange
    const make = algorithm[coordination] as NonNullable<(typeof algorithm)['local']>
    const { maxKeys, overflow } = this.#settings
    return new Limiter(policy, (site: SharedSite) => make(site, exchange), this.#events, maxKeys, overflow)
  }

  async #close(): Promise<void> {
    const was = this.#state
    // No timer or socket of a throttler keeps the process alive, so it could end before this is done.
    const release = this.clock.hold?.()
    try {
      const left = this.#coordinator?.leave(this.#self, was === 'running' ? this.#settings.closeTimeout : 0)
      await left
    } finally {
      this.#state = 'closed'
      for (const { meter } of this.#limiters) meter.rollAt = Number.NEGATIVE_INFINITY
      this.#ticker.stop()
      release?.()
    }
  }

  /** Rolls a limiter over, or finds out that the throttler has not started or is closed: then `rollAt` is in the past. */
  #roll({ meter }: Limiter, now: number): void {
    if (this.#state === 'closed') throw closedError()
    if (this.#state === 'idle') this.start()
    if (now >= meter.rollAt) meter.roll(now)
  }

  #now(): number {
    const now = this.clock.monotonic()
    for (const limiter of this.#limiters) if (now >= limiter.meter.rollAt) this.#roll(limiter, now)
    return now
  }

  #tick(now: number): number {
    return Math.min(this.#throttled.tick(this.#limiters, now), this.#local.tick(this.#alone, now))
  }

  #wake(): void {
    if (this.#coordinator === undefined) this.#ticker.wake()
    else this.#coordinator.wake()
  }
}

/** So long, in intervals, the store may have counts of a policy that was taken out. */
const KEPT_INTERVALS = 3

/** What a snapshot tells of the exchange where there is none. */
const NO_STORE: Pick<Snapshot, 'degradedFor' | 'nodes' | 'sync'> = Object.freeze({
  degradedFor: 0,
  nodes: 1,
  sync: {
    exchanges: 0,
    failures: 0,
    failuresByCause: { timeout: 0, unavailable: 0, reply: 0, refused: 0 },
    entries: 0,
    lastDuration: 0,
    lastError: undefined,
    sinceSuccess: undefined,
    clockOffset: 0,
    clockUncertainty: 0,
  },
})

let saidLocal = false

function warnLocal(): void {
  if (saidLocal) return
  saidLocal = true
  warnProcess(
    'WEIR_LOCAL_ONLY',
    'This throttler has no store, so it limits this process alone. Give it a store such as redisStore(...), or its policies coordination: "local" to say that this is meant.',
  )
}

function reportListenerError(event: EventName, failure: NoAnswer): void {
  warnProcess(
    'WEIR_LISTENER',
    `A listener of "${event}" ${failure.problem}. It is told of further events all the same. ${stackOf(failure.error)}`,
  )
}
