import { parsePolicies, stepOf } from '../decide/check-policy.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import { peekOne } from '../decide/peek.ts'
import { expandPlans, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { type CheckOptions, RequestPath } from '../decide/request-path.ts'
import { isCost, MOST_UNITS } from '../keys/units.ts'
import type { Duration } from '../options/duration.ts'
import type { AcquireOptions, ScheduleOptions, WrapOptions } from '../queue/options.ts'
import type { Queues } from '../queue/queues.ts'
import { closedError, show, WeirError, warnProcess } from '../report/errors.ts'
import { Emitter, type EventName, type Listener } from '../report/events.ts'
import { logEvents } from '../report/logger.ts'
import { Once } from '../report/once.ts'
import { stackOf } from '../report/show.ts'
import type { NoAnswer } from '../report/user-function.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { Coordinated, Coordinator, Inspected, Store, ThrottlerState } from './coordinator.ts'
import { LimiterSet } from './limiter-set.ts'
import { countedKey, type PolicyChoice } from './limiters-of.ts'
import { LocalMeters, Ticker } from './local.ts'
import { type BlockOptions, ManualBlocks } from './manual-blocks.ts'
import type { Names } from './names.ts'
import { newNodeId } from './node-id.ts'
import type { AcquireHost } from './open-queues.ts'
import { type ThrottlerOptions, type ThrottlerSettings, throttlerSettings } from './options.ts'
import { charge, refund } from './refunds.ts'
import { reset } from './reset.ts'
import { ThrottledReport } from './throttled-report.ts'
import { type Usage, type UsageOptions, usage } from './usage.ts'

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
  /** The rules of all throttlers of this process with the same store; undefined without one. For adapters. */
  readonly names: Names | undefined
  readonly #settings: ThrottlerSettings
  readonly #emitter: Emitter
  readonly #store: Store | undefined
  readonly #coordinator: Coordinator | undefined
  readonly #ownId: string
  readonly #self: Coordinated
  readonly #local: LocalMeters
  /** Where nothing else keeps time. */
  readonly #ticker: Ticker
  readonly #limiters: LimiterSet
  readonly #path: RequestPath<Name>
  readonly #blocks: ManualBlocks
  readonly #throttled: ThrottledReport
  /** Requests that wait for their turn, once there were some. */
  #queues: Queues<Decision> | undefined
  #loading: Promise<Queues<Decision>> | undefined
  #state: 'idle' | 'running' | 'closed' = 'idle'
  #policies: readonly Policy<Name>[] = []
  #rules: readonly PolicyOptions<Req, Name>[] = []
  #version = 0
  readonly #warned = new Once()
  #closing: Promise<void> | undefined

  constructor(options: ThrottlerOptions<Req, Name>) {
    const settings = throttlerSettings(options)
    const { random = Math.random, clock = systemClock, store, logger } = options
    const rules = expandPlans<Req>(options.policies) as readonly PolicyOptions<Req, Name>[]
    const policies = parsePolicies(rules as readonly PolicyOptions<never, Name>[], store !== undefined)
    checkDecides(policies, store)
    this.#settings = settings
    this.#store = store
    this.clock = clock
    this.#local = new LocalMeters(clock)
    this.#ticker = new Ticker(clock, (now) => this.#tick(now))
    const self = this
    this.#self = {
      clock,
      startedAt: clock.monotonic(),
      get nodeId() {
        return self.nodeId
      },
      get state() {
        return self.state
      },
      get limiters() {
        return self.#limiters.all
      },
      get coordinator() {
        return self.#coordinator
      },
      emitter: new Emitter(reportListenerError),
      get rules() {
        return self.#rules as readonly PolicyOptions<never>[]
      },
      meters: () => this.#limiters.exchanging,
      tick: (now) => this.#tick(now),
      warn: (error, subject) => this.warn(error, subject),
    }
    this.#coordinator = store?.coordinate({
      clock,
      random,
      heartbeat: settings.heartbeat,
      throttler: this.#self,
      rules: rules as readonly PolicyOptions<never>[],
      policies,
    })
    this.names = this.#coordinator?.names
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
    const exchanges = { local: this.#local.exchange, shared: this.#coordinator?.exchange }
    this.#limiters = new LimiterSet(settings, emitter, exchanges)
    this.#path = new RequestPath({
      clock,
      get closed() {
        return self.#state === 'closed'
      },
      roll: (limiter, now) => this.#roll(limiter, now),
      asking: this.#coordinator?.asking,
      warn: (error, subject) => this.warn(error, subject),
    })
    this.#blocks = new ManualBlocks({ limiters: () => this.#limiters.all, now: () => this.#now() })
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

  /** Whether requests to some policy may have to wait for the store: then adapters use `decideAsync`. */
  get waits(): boolean {
    return this.#path.waits
  }

  /** What `snapshot` and `cluster` of `@weir/core/inspect` read. */
  get inspected(): Inspected {
    return this.#self
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

  /**
   * What `check` would answer now, by what this node knows: nothing is counted, no cooldown starts, and a key that is not
   * known stays unknown. `remaining` is what is left now. `usage` asks the other nodes as well.
   *
   * @param options the cost, or `{ cost, limit }`; a cost of 0 asks only whether the key is blocked
   */
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
   * As `check`, for policies whose requests may have to wait for the store (coordination `'leases'` and `'central'`): at most their
   * `deadline`, then the policy's `degraded` choice decides. Functions that read the request may answer within 1 s.
   */
  checkAsync(key: string, options?: number | CheckOptions): Promise<Decision<Name>> {
    return this.#path.checkAsync(key, options)
  }

  /** As `decide`, for policies whose requests may have to wait. A promise only when this one must. */
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
  ): Decision<Name> | Promise<Decision<Name>> {
    return this.#path.decideAsync(keys, costs, applying, applied)
  }

  /**
   * As `checkAsync`, but a request that is refused waits until it may go, in its turn: first come, first served among those of
   * its key and priority, and one key after another where a policy counts them together. It is refused at once if it is known that it
   * can't go in time. What waits takes nothing, and starts no cooldown.
   *
   * @throws (rejects) AcquireError with the reason `'timeout'`, `'aborted'`, `'queue-full'`, `'never-fits'` or `'closed'`; WeirError
   * `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   *
   * @example
   * await throttler.acquire('api.example.com', { timeout: '5s' })
   */
  acquire(key: string, options?: AcquireOptions): Promise<Decision<Name>> {
    // No async function: what waits is to be small.
    if (typeof key !== 'string' || this.#queues === undefined) return this.#acquireLater(key, options)
    return this.#queues.acquire(countedKey(key), options) as Promise<Decision<Name>>
  }

  /**
   * Waits for the `delay` of an allowed decision, and resolves with the decision as it is then.
   *
   * @param signal when it is aborted, what the decision took is given back, and those behind it move up
   * @throws (rejects) AcquireError with the reason `'aborted'`, `'queue-full'` or `'closed'`: the decision's units are given back
   */
  async hold(decision: Decision<Name>, signal?: AbortSignal): Promise<Decision<Name>> {
    if (!(decision.delay > 0)) return decision
    const queues = this.#queues ?? (await this.#load())
    return (await queues.hold(decision, signal)) as Decision<Name>
  }

  /**
   * Calls a function as soon as it may go, see `acquire`, and resolves with what it returns.
   *
   * @throws (rejects) as `acquire`, and with what the function throws
   */
  async schedule<T>(key: string, run: () => T | PromiseLike<T>, options?: ScheduleOptions): Promise<T> {
    await this.acquire(key, options)
    return await run()
  }

  /**
   * A function that calls another as soon as it may go, see `acquire`.
   *
   * @param options as for `acquire`, and the key: a string, or a function of what the function is called with
   *
   * @example
   * const send = throttler.wrap(sendMail, { key: ({ to }) => to })
   */
  wrap<Args extends readonly unknown[], T>(
    run: (...args: Args) => T | PromiseLike<T>,
    options: WrapOptions<Args>,
  ): (...args: Args) => Promise<T> {
    const { key, ...rest } = options
    return async (...args) => this.schedule(typeof key === 'function' ? key(...args) : key, () => run(...args), rest)
  }

  /** Requests that wait with `acquire`. */
  get waiting(): number {
    return this.#queues?.size ?? 0
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
    refund(decision, units, this.#limiters.all, this.clock.monotonic(), (limiter, now) => this.#roll(limiter, now))
    this.#queues?.nudge(decision.parts)
  }

  /**
   * Counts more units for an allowed request, e.g. when its response shows what it really cost. They count whether or not
   * they still fit, in the running interval, and the other nodes hear at once of a charge that passes the limit; `refund` takes
   * units back.
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
    charge(decision, Math.min(units, MOST_UNITS), this.#limiters.all, this.#now())
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
   * Begins a key's counts anew at all nodes, as if it had made no request yet: its cooldown ends, and how often it was
   * blocked is forgotten. Units count no more that other nodes hold and have not sent, and refunds of earlier requests
   * change nothing. A block by hand stays. While the store is away it holds here, and is told when the store is back.
   *
   * @param key what is counted; policies with `key: 'all'` count by `'all'`
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_CLOSED`
   *
   * @example
   * if (await passwordMatches(user, password)) throttler.reset(user, { policy: 'login' })
   */
  reset(key: string, options: PolicyChoice = {}): void {
    reset(key, options, this.#limiters.all, this.#now())
    this.#queues?.nudgeAll()
  }

  /**
   * How much of its limits a key has used, in the order of the policies: the sum over all nodes, also of what they have not
   * sent. Takes some round trips of the store; when it does not answer within `timeout`, or there is none, it is what this
   * node knows, and `source` says so. For support and account pages, not for each request.
   *
   * @param key as for `check`: for policies with `key: 'all'` it is the counter that all share
   * @throws (rejects) WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_CLOSED`
   *
   * @example
   * const [{ used, limit }] = await throttler.usage(userId, { policy: 'user' })
   */
  usage(key: string, options: UsageOptions = {}): Promise<readonly Usage<Name>[]> {
    return usage(key, options, {
      coordinator: this.#coordinator,
      limiters: this.#limiters.all,
      rules: this.#rules as readonly PolicyOptions<never>[],
      now: () => this.#now(),
    }) as Promise<readonly Usage<Name>[]>
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
    checkDecides(parsed, this.#store)
    const ids = parsed.map(({ id }) => id)
    if (this.#coordinator?.serves(this.#self, ids) === false) {
      throw new WeirError(
        'WEIR_DUPLICATE_POLICY',
        'A policy has the name, algorithm, coordination and interval of one of another throttler with the same store; give it a "name" of its own.',
      )
    }
    this.names?.claim(this.#self, rules as readonly PolicyOptions<never>[], parsed)
    const before = this.#limiters.exchanging
    this.#adopt(rules, parsed)
    const { exchanging } = this.#limiters
    this.#coordinator?.retire(before.filter((meter) => !exchanging.includes(meter)))
    if (exchanging.some((meter) => !before.includes(meter))) this.#coordinator?.welcome()
    if (this.#coordinator === undefined && this.#state === 'running') this.#ticker.wake()
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
    for (const { meter } of this.#limiters.all) meter.roll(now)
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
   * Ends with requests that wait, as `queue.onClose` says, then sends what is left, each within `closeTimeout`, and closes the store's connection. Decisions after it throw
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
    this.#limiters.adopt(policies, this.clock.monotonic(), this.#state !== 'idle')
    this.#path.adopt(rules, this.#limiters.all)
    this.#policies = policies
    this.#rules = rules
    this.#version++
    this.#queues?.nudgeAll()
  }

  async #close(): Promise<void> {
    const was = this.#state
    // No timer or socket of a throttler keeps the process alive, so it could end before this is done.
    const release = this.clock.hold?.()
    try {
      const queues = this.#queues ?? (await this.#loading)
      if (queues !== undefined) await queues.close(was === 'running' ? this.#settings.closeTimeout : 0)
      const left = this.#coordinator?.leave(this.#self, was === 'running' ? this.#settings.closeTimeout : 0)
      await left
    } finally {
      this.#state = 'closed'
      this.names?.release(this.#self)
      for (const { meter } of this.#limiters.all) meter.rollAt = Number.NEGATIVE_INFINITY
      this.#ticker.stop()
      release?.()
    }
  }

  async #acquireLater(key: string, options: AcquireOptions | undefined): Promise<Decision<Name>> {
    const counted = countedKey(key)
    return (await (await this.#load()).acquire(counted, options)) as Decision<Name>
  }

  #load(): Promise<Queues<Decision>> {
    this.#loading ??= import('./open-queues.ts').then(({ openQueues }) => {
      const self = this
      const host: AcquireHost = {
        clock: this.clock,
        emitter: this.#emitter,
        get limiters() {
          return self.#limiters.all
        },
        get degraded() {
          return self.state === 'degraded'
        },
        get rules() {
          return self.#rules as readonly PolicyOptions<never>[]
        },
        path: this.#path,
        peekOne,
        PolicyDecision,
        combined,
        refund: (decision, units) => this.refund(decision, units),
      }
      const queues = openQueues(host, this.#settings.queue)
      this.#queues = queues
      if (this.#state === 'closed') void queues.close(0)
      return queues
    })
    return this.#loading
  }

  /** Rolls a limiter over, or finds out that the throttler has not started or is closed: then `rollAt` is in the past. */
  #roll({ meter }: Limiter, now: number): void {
    if (this.#state === 'closed') throw closedError()
    if (this.#state === 'idle') this.start()
    if (now >= meter.rollAt) meter.roll(now)
  }

  #now(): number {
    const now = this.clock.monotonic()
    for (const limiter of this.#limiters.all) if (now >= limiter.meter.rollAt) this.#roll(limiter, now)
    return now
  }

  #tick(now: number): number {
    return Math.min(this.#throttled.tick(this.#limiters.all, now), this.#local.tick(this.#limiters.alone, now))
  }

  #wake(): void {
    if (this.#coordinator === undefined) this.#ticker.wake()
    else this.#coordinator.wake()
  }
}

/** @throws WeirError `WEIR_INVALID_OPTION` for a policy whose requests the store is to decide about, and can't */
function checkDecides(policies: readonly Policy[], store: Store | undefined): void {
  for (const { name, algorithm, coordination } of policies) {
    if (coordination !== 'central' || store?.decides?.(stepOf(algorithm) ?? '') === true) continue
    const what = `Option "coordination" of the policy ${show(name)} is "central", but the store ${show(store?.kind)}`
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `${what} can't decide about requests by ${algorithm.name}; give another coordination or store.`,
    )
  }
}

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
