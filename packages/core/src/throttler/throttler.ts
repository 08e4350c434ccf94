import { makeCounter } from '../algorithms/make-counter.ts'
import { parsePolicies } from '../decide/check-policy.ts'
import { RequestPath } from '../decide/decide-several.ts'
import type { Decision } from '../decide/decision.ts'
import type { Counter, CounterHost } from '../decide/limiter.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import type { PlannedPolicyOptions } from '../http/request/plans.ts'
import type { ClusterNode } from '../inspect/node-status.ts'
import { type Snapshot, SnapshotMaker, type SnapshotOptions } from '../inspect/snapshot.ts'
import { isCost, MOST_UNITS } from '../keys/units.ts'
import { closedError, show, WeirError, warnProcess } from '../report/errors.ts'
import { Emitter, type EventName, type Listener } from '../report/events.ts'
import { logEvents } from '../report/logger.ts'
import { Once } from '../report/once.ts'
import { stackOf } from '../report/show.ts'
import type { NoAnswer } from '../report/user-function.ts'
import type { Store } from '../store/contract.ts'
import { SyncLoop } from '../sync/exchange/loop.ts'
import { kindOf, openStore } from '../sync/link/open-store.ts'
import { StoreState, type ThrottlerState } from '../sync/link/state.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { Duration } from '../time/duration.ts'
import { StoreTime } from '../time/store-time.ts'
import { hostOfCounters } from './counter-host.ts'
import { type BlockOptions, ManualBlocks } from './manual-blocks.ts'
import { newNodeId, requestRules, type ThrottlerOptions, type ThrottlerSettings, throttlerSettings } from './options.ts'
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
  /** Unique to this start. */
  readonly nodeId: string
  /** Its time and timers, by which adapters wait. */
  readonly clock: Clock
  readonly #store: Store | undefined
  readonly #host: CounterHost
  readonly #settings: ThrottlerSettings
  #policies: readonly Policy<Name>[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  #version = 0
  #counters: readonly Counter[] = []
  readonly #emitter: Emitter
  readonly #loop: SyncLoop
  readonly #link: StoreState
  readonly #path: RequestPath<Name, Req>
  readonly #blocks: ManualBlocks
  readonly #localTime: StoreTime
  readonly #snapshots = new SnapshotMaker()
  readonly #throttled: ThrottledReport
  readonly #warned = new Once()
  #closing: Promise<void> | undefined

  constructor(options: ThrottlerOptions<Req, Name>) {
    const settings = throttlerSettings(options)
    const rules = requestRules(options.policies)
    const policies = parsePolicies(rules as readonly PolicyOptions<never, Name>[])
    const { random = Math.random, clock = systemClock } = options
    this.#settings = settings
    this.clock = clock
    this.#store = options.store
    this.nodeId = newNodeId(random)
    const now = this.clock.monotonic()
    this.#localTime = new StoreTime(this.clock.now(), now)
    this.#emitter = new Emitter(this.nodeId, reportListenerError)
    this.#throttled = new ThrottledReport(this.#emitter)
    if (options.logger !== undefined) logEvents(options.logger, this.nodeId, (name, listener) => this.#emitter.on(name, listener))
    const self = this
    // What the parts see of each other, as some are made after others that need them.
    const parts = {
      clock,
      emitter: this.#emitter,
      connected: this.#store !== undefined,
      localTime: this.#localTime,
      storeKind: kindOf(this.#store),
      get counters() {
        return self.#counters
      },
      get loop() {
        return self.#loop
      },
      get link() {
        return self.#link
      },
      get closed() {
        return self.#link.state === 'closed'
      },
      roll: (counter: Counter, now: number) => this.#roll(counter, now),
      warn: (error: WeirError, subject?: string) => this.warn(error, subject),
    }
    this.#link = new StoreState(parts)
    this.#path = new RequestPath(parts)
    this.#host = hostOfCounters(parts)
    this.#blocks = new ManualBlocks({ host: this.#host, counters: () => this.#counters, now: () => this.#now() })
    this.#adopt(rules, policies)
    this.#loop = new SyncLoop({
      clock: this.clock,
      random,
      counters: () => this.#counters,
      heartbeat: settings.heartbeat,
      time: this.#link.time,
      observer: {
        succeeded: (reply, entries, sent, received) => this.#link.succeeded(reply, entries, sent, received),
        heartbeat: (reply, sent, received) => this.#link.heartbeat(reply, sent, received),
        failed: (error, entries, sent, received) => this.#link.failed(error, entries, sent, received),
        tick: (monotonic) => {
          this.#localTime.observe(monotonic, monotonic, this.clock.now())
          return this.#throttled.tick(this.#counters, monotonic)
        },
        nonsense: (what, policyId, key) => this.#link.nonsense(what, policyId, key),
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
    return this.#path.strict
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
   * @throws WeirError `WEIR_INVALID_KEY` when the subject is neither, `WEIR_ASYNC_POLICY` when a function that reads the
   * request returns a promise (ask with `checkAsync`), `WEIR_CLOSED` after `close`
   */
  check(subject: string | Req, cost?: number): Decision<Name> {
    return this.#path.check(subject, cost)
  }

  /** As `check`, but nothing is counted and no cooldown starts. */
  peek(subject: string | Req, cost?: number): Decision<Name> {
    return this.#path.peek(subject, cost)
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
    return this.#path.decide(keys, costs, applying, applied)
  }

  /**
   * As `check`, but a policy with `strict` lets a request wait for the store's word near its limit: at most 50 ms, then
   * the policy's `degraded` choice decides. Functions that read the request may answer within 1 s.
   */
  checkAsync(subject: string | Req, cost?: number): Promise<Decision<Name>> {
    return this.#path.checkAsync(subject, cost)
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
   * Gives units of an allowed decision back, to the interval that they were taken from; of several policies each gets
   * its own back. Never more than the decision took.
   *
   * @param units default: all that is left of the decision's cost. Anything but a number > 0 gives nothing back, and
   * neither does a throttler that is closed.
   */
  refund(decision: Decision, units: number = Number.POSITIVE_INFINITY): void {
    if (typeof units !== 'number' || !(units > 0) || this.#link.state === 'closed') return
    refund(decision, units, this.#counters, this.clock.monotonic(), (counter, now) => this.#roll(counter, now))
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
    charge(decision, Math.min(units, MOST_UNITS), this.#counters, this.#now())
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
   * Lifts the block of a key at all nodes, also one that an excess started. The key's counts stay.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`
   */
  unblock(key: string, options: BlockOptions = {}): void {
    this.#blocks.unblock(key, options)
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
    const now = this.clock.monotonic()
    const about = { node: this.nodeId, ...this.#link.about(now) }
    return this.#snapshots.make(this.#counters, now, about, options)
  }

  /**
   * The live nodes of the cluster as far as known, this one first. Asked for regularly (once a second, say), the others are
   * up to date within two heartbeats; they tell of themselves only while somebody asks.
   */
  cluster(): readonly ClusterNode[] {
    return this.#link.watch.nodes(this.snapshot(), this.clock.monotonic())
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
    const now = this.clock.monotonic()
    this.#link.state = this.#store === undefined ? 'local' : 'connecting'
    for (const counter of this.#counters) counter.roll(now)
    if (this.#store === undefined) {
      warnLocal()
      this.#loop.start(undefined)
      return this
    }
    const connection = openStore(this.#store, {
      id: this.nodeId,
      clock: this.clock,
      announced: (announcement) => this.#link.heard(announcement),
      warned: (error) => this.#report(error),
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
    if (this.#warned.first(`${error.code}:${subject}`)) this.#report(error)
  }

  #report(error: WeirError): void {
    if (this.#emitter.has('warning')) this.#emitter.emit('warning', { error })
    else warnProcess(error.code, error.message)
  }

  #adopt(rules: readonly PolicyOptions<Req, Name>[], policies: readonly Policy<Name>[]): void {
    const now = this.clock.monotonic()
    const running = this.#link.state !== 'idle'
    const { maxKeys, overflow } = this.#settings
    this.#counters = policies.map((policy) => {
      const kept = this.#counters.find((counter) => counter.policy.id === policy.id)
      if (kept === undefined) {
        const made = makeCounter(policy, this.#host, maxKeys, overflow)
        if (running) made.roll(now)
        return made
      }
      kept.adopt(policy, now)
      // An idle throttler starts at its first decision, which it recognises by a `rollAt` in the past.
      if (!running) kept.rollAt = Number.NEGATIVE_INFINITY
      return kept
    })
    this.#path.adopt(rules, this.#counters)
    this.#policies = policies
    this.#rules = rules
    this.#version++
  }

  async #close(): Promise<void> {
    const was = this.#link.state
    const { closeTimeout } = this.#settings
    const begun = this.clock.monotonic()
    // All timers and sockets let a process end: it would before this is done.
    const release = this.clock.hold?.()
    try {
      if (was === 'synced' || was === 'connecting' || was === 'degraded') await this.#loop.flush(closeTimeout)
      this.#link.state = 'closed'
      for (const counter of this.#counters) counter.rollAt = Number.NEGATIVE_INFINITY
      await this.#loop.stop(Math.max(LEAVE, closeTimeout - (this.clock.monotonic() - begun)))
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
    const now = this.clock.monotonic()
    for (const counter of this.#counters) if (now >= counter.rollAt) this.#roll(counter, now)
    return now
  }
}

/** To say goodbye to the store a throttler has this time at least, in milliseconds, however little was left of `closeTimeout`. */
const LEAVE = 100

let saidLocal = false

function warnLocal(): void {
  if (saidLocal) return
  saidLocal = true
  warnProcess(
    'WEIR_LOCAL_ONLY',
    'This throttler has no store, so it limits this process alone. Give it a store such as redisStore(...), or memoryStore() to say that this is meant.',
  )
}

function reportListenerError(event: EventName, failure: NoAnswer): void {
  warnProcess(
    'WEIR_LISTENER',
    `A listener of "${event}" ${failure.problem}. It is told of further events all the same. ${stackOf(failure.error)}`,
  )
}
