import { Budget, type BudgetHost } from '../budget/budget.ts'
import { parsePolicies } from '../decide/check-policy.ts'
import { countsAtStore } from '../decide/coordination.ts'
import type { Costs } from '../decide/costs.ts'
import type { Decision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import { expandPlans, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions, Policy, PolicyOptions } from '../decide/policy.ts'
import { RequestPath, type RequestPathHost } from '../decide/request-path.ts'
import { ownRule, requireKeys } from '../decide/request-rule.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import type { WaitingRequests } from '../queue/waits.ts'
import { closedError, invalidOption, type WeirError, warnProcess } from '../report/errors.ts'
import { Emitter, EVENTS, type EventName, type Listener } from '../report/events.ts'
import { logEvents } from '../report/logger.ts'
import { checkOptions } from '../report/names.ts'
import { Once } from '../report/once.ts'
import { Requests } from '../report/requests.ts'
import type { FollowedRules } from '../report/rules-status.ts'
import { type Clock, keptAlive, systemClock, timersAreFake, whenHalfFaked, whenTimersAreFaked, within } from '../time/clock.ts'
import { loadCode } from '../time/load-code.ts'
import { checkDecides } from './check-decides.ts'
import type { Coordinated, Coordinator, Store, ThrottlerState } from './coordinator.ts'
import { type KeyLimit, type KeyLimits, keyLimits } from './key-limits.ts'
import { LimiterSet } from './limiter-set.ts'
import type { ActionOptions } from './limiters-of.ts'
import { LocalMeters, Ticker } from './local.ts'
import { noticeLongIntervals } from './long-intervals.ts'
import { newNodeId } from './node-id.ts'
import type { AcquireHost } from './open-queues.ts'
import { countClosed, countOpened } from './open-throttlers.ts'
import { type ThrottlerOptions, throttlerSettings } from './options.ts'
import { chargeOne, giveBack } from './refunds.ts'
import { RejectionsReport } from './rejections-report.ts'
import { noticeShortDurations } from './short-durations.ts'
import { WaitingRoom } from './waiting-room.ts'
import { warnLocal, warnOfFakeTimers, warnOfHalfFakedTime, warnOfListener } from './warnings.ts'

/** Options of `flush`. */
export interface FlushOptions {
  /**
   * Limits how long the promise stays pending: 1 ms to 60 s.
   *
   * @default '1s'
   */
  readonly timeout?: Duration
}

/** Milliseconds. */
const LONGEST_FLUSH = 60_000

type AnyRules = readonly PolicyOptions<never>[]
type GivenRules = readonly (AnyPolicyOptions<never> | PlannedPolicyOptions<never>)[]

/**
 * The parts of a throttler, which reach each other through it, and its life from `idle` over `running` to `closed`. Users get the
 * `Throttler` in front of it.
 */
export class Engine implements Coordinated, AcquireHost, BudgetHost, RequestPathHost {
  readonly clock: Clock
  readonly random: () => number
  readonly startedAt: number
  readonly requests: Requests
  readonly emitter: Emitter = new Emitter(warnOfListener)
  readonly coordinator: Coordinator | undefined
  readonly path: RequestPath<string>
  readonly waitingRoom: WaitingRoom
  /** The policies, checked and frozen, and their options, in the same order. */
  policies: readonly Policy[] = []
  rules: AnyRules = []
  /** How often the rules have changed. */
  version = 0
  followed: FollowedRules | undefined = undefined
  readonly #store: Store | undefined
  readonly #closeTimeout: number
  readonly #ownId: string
  readonly #local: LocalMeters
  /** Used if there is no coordinator that keeps time. */
  readonly #ticker: Ticker
  readonly #limiters: LimiterSet
  readonly #rejections: RejectionsReport
  readonly #warned = new Once()
  #limits: KeyLimits | undefined
  readonly #had = new WeakSet<Policy>()
  #life: 'idle' | 'running' | 'closed' = 'idle'
  /** Settles when all manual actions are in the audit log. */
  #audited: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #budget: Budget | undefined
  #unwatchTimers: (() => void) | undefined
  /** Whether an adapter decides by it, so that each policy needs a `key`. */
  #servesRequests = false

  constructor(options: ThrottlerOptions<never>) {
    const settings = throttlerSettings(options)
    const { random = Math.random, clock = systemClock, store, logger } = options
    const { rules, policies } = rulesOf(options.policies, store)
    if (clock === systemClock) whenHalfFaked(warnOfHalfFakedTime)
    this.clock = clock
    this.random = random
    this.startedAt = clock.monotonic()
    this.requests = new Requests(this.startedAt, this.emitter)
    this.#store = store
    this.#closeTimeout = settings.closeTimeout
    this.#local = new LocalMeters(clock)
    this.#ticker = new Ticker(clock, (now) => this.tick(now))
    const { heartbeat } = settings
    this.coordinator = store?.coordinate({ clock, random, heartbeat, throttler: this, policies })
    this.#ownId = newNodeId(random)
    this.emitter.node = this.nodeId
    this.emitter.defer = (run) => clock.defer(run)
    this.#rejections = new RejectionsReport(this.emitter)
    if (logger !== undefined) logEvents(logger, this.emitter)
    this.waitingRoom = new WaitingRoom(this, settings.queue)
    this.#limiters = new LimiterSet(settings, this, { local: this.#local.exchange, shared: this.coordinator?.exchange })
    this.path = new RequestPath(this)
    this.#adopt(rules, policies, undefined)
    // Simulations make hundreds, with a clock of their own.
    if (clock === systemClock) countOpened()
  }

  get nodeId(): string {
    return this.coordinator?.nodeId ?? this.#ownId
  }

  get state(): ThrottlerState {
    return this.#life === 'running' ? (this.coordinator?.state ?? 'local') : this.#life
  }

  get closed(): boolean {
    return this.#life === 'closed'
  }

  get storeDown(): boolean {
    return this.state === 'storeDown'
  }

  /** In the order of the policies. */
  get limiters(): readonly Limiter[] {
    return this.#limiters.all
  }

  /** The open reservations. */
  get budget(): Budget {
    this.#budget ??= new Budget(this)
    return this.#budget
  }

  get storeReserves(): boolean | undefined {
    return this.#store && this.#store.reserves === true
  }

  checkDelayed(key: string, cost: Costs): Promise<Decision> {
    return this.waitingRoom.check(key, { cost })
  }

  chargeOne(limiter: Limiter, key: string, units: number, now: number): void {
    chargeOne(limiter, key, units, now)
  }

  release(decision: Pick<Decision, 'parts'>): void {
    giveBack(decision, Number.POSITIVE_INFINITY, 'slots', this)
    this.waitingRoom.queues?.released(decision.parts)
  }

  serveRequests(): void {
    requireKeys(this.rules)
    this.#servesRequests = true
  }

  hadPolicy(policy: Policy): boolean {
    return this.#had.has(policy)
  }

  get asking(): Coordinator['asking'] | undefined {
    return this.coordinator?.asking
  }

  get holding(): Coordinator['holding'] | undefined {
    return this.coordinator?.holding
  }

  get waitingAtStore(): Coordinator['waitingAtStore'] | undefined {
    return this.coordinator?.waitingAtStore
  }

  meters(): LimiterSet['exchanging'] {
    return this.#limiters.exchanging
  }

  waitingRequests(now: number): WaitingRequests | undefined {
    return this.waitingRoom.queues?.waitingRequests(now)
  }

  /** A policy's key may have capacity again. */
  freed(policy: Policy, key: string): void {
    this.waitingRoom.queues?.nudge([{ policy, key }])
  }

  giveBack(decision: Pick<Decision, 'parts'>, units: number = Number.POSITIVE_INFINITY): void {
    giveBack(decision, units, 'all', this)
    this.waitingRoom.queues?.nudge(decision.parts)
  }

  /** As the throttler's. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    if (!EVENTS.includes(name)) throw invalidOption('event', name, `one of ${EVENTS.join(', ')}`)
    if (typeof listener !== 'function') throw invalidOption('listener', listener, 'a function')
    const off = this.emitter.on(name, listener)
    if (name === 'rejections' && this.#life === 'running') this.#wake()
    return off
  }

  /** As the throttler's. */
  warn(error: WeirError, subject = ''): void {
    if (!this.#warned.first(`${error.code}:${subject}`)) return
    if (this.emitter.has('warning')) this.emitter.emit('warning', { error })
    else warnProcess(error.code, error.message)
  }

  /** As the throttler's. */
  update(given: GivenRules, limits: readonly KeyLimit[] | undefined): void {
    if (this.closed) throw closedError()
    if (this.#servesRequests) requireKeys(given)
    const { rules, policies } = rulesOf(given, this.#store)
    const keyed = limits === undefined ? this.#limits : keyLimits(limits, policies)
    const { coordinator } = this
    const before = this.meters()
    this.#adopt(rules, policies, keyed)
    const now = this.meters()
    coordinator?.retire(before.filter((meter) => !now.includes(meter)))
    if (now.some((meter) => !before.includes(meter))) coordinator?.welcome()
    if (coordinator === undefined && this.#life === 'running') this.#ticker.wake()
    if (this.#life === 'running') this.#notice()
  }

  /** Replaces its own rules of the same names by these. */
  replace(rules: AnyRules): void {
    const by = new Map(rules.map((rule) => [rule.name ?? 'default', rule]))
    this.update(
      this.rules.map((rule) => by.get(rule.name ?? 'default') ?? rule),
      undefined,
    )
  }

  /** As the throttler's. */
  start(): void {
    if (this.closed) throw closedError()
    // Where nothing may be started outside of requests, the first request starts it.
    if (this.#life !== 'idle' || this.clock.stopped) return
    this.#local.begin()
    this.coordinator?.begin()
    this.#rollAll()
    this.#life = 'running'
    if (this.coordinator === undefined) {
      if (this.rules.some(countsAtStore)) warnLocal()
      this.#ticker.wake()
    } else {
      // A store without an address is in this process.
      if (this.#store?.address !== undefined && this.clock === systemClock) this.#watchTimers(this.#store.kind)
      this.coordinator.join(this)
      this.emitter.node = this.nodeId
    }
    this.#notice()
  }

  /** Adds a manual action to the audit log if it has a reason. Loads the code for it then. */
  audit(action: string, key: string, { policy, reason }: ActionOptions): void {
    if (reason === undefined) return
    const added = loadCode(() => import('./audit.ts')).then(({ record }) => record({ action, key, policy, reason }, this))
    // An error of Node.js has a code, too.
    this.#audited = Promise.all([this.#audited, added]).then(
      () => {},
      (error) => this.warn(error, 'audit'),
    )
  }

  /** As the throttler's. */
  async flush(options: FlushOptions): Promise<boolean> {
    checkOptions('flush', options, ['timeout'], 'options such as { timeout: "1s" }')
    const timeout = options.timeout === undefined ? 1_000 : parseDuration(options.timeout, 'timeout', 1, LONGEST_FLUSH)
    if (this.#life !== 'running' || this.coordinator === undefined) return true
    return await this.coordinator.flush(timeout)
  }

  /** As the throttler's. */
  close(): Promise<void> {
    // From now on, its successor need not agree with it any more, even while it still sends its last counts.
    this.coordinator?.names.release(this)
    // The process could end before that is done.
    this.#closing ??= keptAlive(this.clock, this.#close())
    return this.#closing
  }

  /**
   * Rolls a limiter to the running interval. If the throttler has not started or is closed, `rollAt` is in the past too: then it starts or
   * throws.
   */
  roll({ meter }: Limiter, now: number): void {
    if (this.closed) throw closedError()
    this.start()
    if (now >= meter.rollAt) meter.roll(now)
    // The first request must come here again.
    if (this.clock.stopped) meter.rollAt = Number.NEGATIVE_INFINITY
  }

  /** The monotonic time, after all limiters were rolled to it. */
  now(): number {
    const now = this.clock.monotonic()
    for (const limiter of this.limiters) if (now >= limiter.meter.rollAt) this.roll(limiter, now)
    return now
  }

  tick(now: number): number {
    this.requests.tick(now)
    // If the store has answered for the first time, limits are no longer divided.
    this.path.refresh()
    const next = Math.min(this.#rejections.tick(this.limiters, now), this.#local.tick(this.#limiters.alone, now))
    for (const { rejectedKeys } of this.limiters) rejectedKeys.tick(now)
    return next
  }

  /** Rolls all meters to the running interval, or none: an algorithm of the application may throw. */
  #rollAll(): void {
    const now = this.clock.monotonic()
    try {
      for (const { meter } of this.limiters) meter.roll(now)
    } catch (error) {
      for (const { meter } of this.limiters) meter.rollAt = Number.NEGATIVE_INFINITY
      throw error
    }
  }

  /** Takes over rules, all or none: everything that may throw is done before the first change. */
  #adopt(rules: AnyRules, policies: readonly Policy[], limits: KeyLimits | undefined): void {
    const now = this.clock.monotonic()
    const limiters = this.#limiters.prepare(policies, now, this.#life !== 'idle')
    this.coordinator?.serve(this, rules, policies)
    this.#limiters.adopt(limiters, policies, now, this.#life !== 'idle')
    this.#limits = limits
    const defer = (run: () => void) => this.clock.defer(run)
    for (const limiter of this.limiters) limiter.override(limits?.get(limiter.policy.name), defer, () => this.path.findLimited())
    this.path.adopt(rules, this.limiters)
    for (const policy of policies) this.#had.add(policy)
    this.policies = policies
    this.rules = rules
    this.version++
    this.waitingRoom.queues?.nudgeAll()
    // So that most requests are decided immediately from the beginning.
    if (this.path.delays) this.waitingRoom.loadDelays()
    this.coordinator?.names.settle()
  }

  /** Warns of rules that probably mean something else than intended. */
  #notice(): void {
    const warn = (error: WeirError, subject: string): void => this.warn(error, subject)
    noticeLongIntervals(this.policies, warn)
    noticeShortDurations(this.rules, warn)
  }

  async #close(): Promise<void> {
    const timeout = this.#life === 'running' ? this.#closeTimeout : 0
    try {
      try {
        await Promise.all([this.waitingRoom.close(timeout), this.#audits(timeout)])
      } finally {
        this.#budget?.close()
        // Even after a failure, the connection is closed.
        await this.coordinator?.leave(this, timeout)
      }
    } finally {
      this.#life = 'closed'
      if (this.clock === systemClock) countClosed()
      this.coordinator?.names.release(this)
      this.#unwatchTimers?.()
      for (const { meter } of this.limiters) meter.rollAt = Number.NEGATIVE_INFINITY
      this.#ticker.stop()
    }
  }

  /** Waits for the audit log, for at most this many milliseconds. */
  #audits(timeout: number): Promise<void> {
    return within(this.clock, timeout, Promise.resolve(this.#audited))
  }

  /** A store can't answer within time that a test has faked. */
  #watchTimers(kind: string): void {
    const warn = (): void => warnOfFakeTimers(kind)
    if (timersAreFake()) warn()
    this.#unwatchTimers = whenTimersAreFaked(warn)
  }

  #wake(): void {
    if (this.coordinator === undefined) this.#ticker.wake()
    else this.coordinator.wake()
  }
}

/** Turns rules with a limit for each plan into several rules, and checks them all. */
function rulesOf(given: GivenRules, store: Store | undefined): { rules: AnyRules; policies: readonly Policy[] } {
  const rules = expandPlans(given) as AnyRules
  const policies = parsePolicies(rules, store !== undefined)
  checkDecides(policies, store)
  return { rules: rules.map(ownRule), policies }
}
