import type { Decision } from '../decide/decision.ts'
import type { PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions, Policy } from '../decide/policy.ts'
import type { CheckOptions, RequestPath } from '../decide/request-path.ts'
import type { Duration } from '../options/duration.ts'
import type { AcquireOptions, ScheduleOptions, WrapOptions } from '../queue/options.ts'
import type { EventName, Listener } from '../report/events.ts'
import { keptAlive } from '../time/clock.ts'
import { ADAPTER, AdapterSide } from './adapter-side.ts'
import type { ThrottlerState } from './coordinator.ts'
import { Engine } from './engine.ts'
import { type Explanation, explain } from './explain.ts'
import type { KeyLimit } from './key-limits.ts'
import { chargeKey, refundKey } from './key-units.ts'
import type { PolicyChoice } from './limiters-of.ts'
import { type BlockOptions, block, unblock } from './manual-blocks.ts'
import type { ThrottlerOptions } from './options.ts'
import { charge, checkDecision, giveBack, refund } from './refunds.ts'
import { reset } from './reset.ts'
import { scheduled, wrapped } from './scheduled.ts'
import { type Usage, type UsageOptions, usage } from './usage.ts'
import type { WaitingRoom } from './waiting-room.ts'

/**
 * Makes a throttler. It connects at its first decision, or at `start()`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_MISSING_OPTION`, `WEIR_DUPLICATE_POLICY`
 *
 * @example
 * const throttler = createThrottler({ policies: [{ name: 'user', limit: 100, interval: '1m' }], store })
 * if (!throttler.check(userId).allowed) reject()
 */
export function createThrottler<const Name extends string = string, Req = unknown>(
  options: ThrottlerOptions<Req, Name>,
): Throttler<Name, Req> {
  return new Throttler(options)
}

/** For adapters, which read it by `adapterOf`. The constructor defines it: with isolatedDeclarations a class can't declare an imported name. */
export interface Throttler<Name extends string = string, Req = unknown> {
  readonly [ADAPTER]: AdapterSide<Name, Req>
}

/** One node: decides at once from what it knows, and exchanges counts with the other nodes in the background. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: see above
export class Throttler<Name extends string = string, Req = unknown> {
  readonly #engine: Engine
  readonly #path: RequestPath<Name>
  readonly #waitingRoom: WaitingRoom

  constructor(options: ThrottlerOptions<Req, Name>) {
    const engine = new Engine(options as ThrottlerOptions<never>)
    this.#engine = engine
    this.#path = engine.path as RequestPath<Name>
    this.#waitingRoom = engine.waitingRoom
    Object.defineProperty(this, ADAPTER, { value: new AdapterSide(engine) })
  }

  /** Unique to this start; throttlers that share a store's value are one node. */
  get nodeId(): string {
    return this.#engine.nodeId
  }

  /** The policies, checked and frozen, in their order. */
  get policies(): readonly Policy<Name>[] {
    return this.#engine.policies as readonly Policy<Name>[]
  }

  /** Whether the store answers: `idle` before the first decision. */
  get state(): ThrottlerState {
    return this.#engine.state
  }

  /**
   * Decides on one request, at once, and counts it if it is allowed.
   *
   * @param key what the request is counted by, in every policy (policies with `key: 'all'` share one counter). From requests
   * an adapter, or a guard of `createGuard`, reads it
   * @param options the cost, or `{ cost, limit }`. A bad cost counts as 1, a bad limit as none, each with one `warning`
   * @throws WeirError `WEIR_INVALID_KEY` when the key is no string, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED` after `close`
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
    const decision = this.#path.peek(key, options)
    this.#told()
    return decision
  }

  /**
   * As `check`, for policies whose requests may have to wait: for the store (coordination `'leased'` and `'central'`), at most their
   * `storeTimeout`, then the policy's `failMode` decides; or because they are held instead of being rejected (`delay`). Then the
   * decision is what it is when the request goes on. Functions that read the request may answer within 1 s.
   */
  checkAsync(key: string, options?: number | CheckOptions): Promise<Decision<Name>> {
    return this.#path.delays
      ? this.#waitingRoom.check(key, options).then((decision) => {
          this.#path.tally(decision)
          return decision as Decision<Name>
        })
      : this.#path.checkAsync(key, options)
  }

  /** Listeners hear of what has happened in a call before it returns. */
  #told(): void {
    this.#engine.emitter.deliver()
  }

  /**
   * As `checkAsync`, but a request that is rejected waits until it may go, in its turn: first come, first served among those of
   * its key and priority, and one key after another where a policy counts them together. It is rejected at once if it is known that it
   * can't go in time. What waits takes nothing, and starts no cooldown.
   *
   * @throws (rejects) AcquireError with the reason `'timeout'`, `'aborted'`, `'queue-full'`, `'never-fits'` or `'closed'`; WeirError
   * `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   *
   * @example
   * await throttler.acquire('api.example.com', { timeout: '5s' })
   */
  acquire(key: string, options?: AcquireOptions): Promise<Decision<Name>> {
    return this.#waitingRoom.acquire(key, options) as Promise<Decision<Name>>
  }

  /**
   * As `acquire`, but a rejection is returned as a decision and not thrown, and by default nothing waits.
   *
   * @param options as of `acquire`, with `timeout` 0 by default
   * @throws (rejects) AcquireError with the reason `'aborted'` or `'closed'`; WeirError as `acquire`
   *
   * @example
   * const { allowed, retryAfterMs } = await throttler.tryAcquire('api.example.com', { timeout: '5s' })
   */
  tryAcquire(key: string, options?: AcquireOptions): Promise<Decision<Name>> {
    return this.#waitingRoom.acquire(key, options, true) as Promise<Decision<Name>>
  }

  /**
   * Waits for the `delayMs` of an allowed decision, and resolves with the decision as it is then.
   *
   * @param signal when it is aborted, what the decision took is given back, and those behind it move up
   * @param client that waits: of one client no more requests wait than places are free (`maxWaiting` of `queue`). Adapters pass its address
   * @throws (rejects) AcquireError with the reason `'aborted'`, `'queue-full'` or `'closed'`: the decision's units are given back; WeirError
   * `WEIR_INVALID_OPTION` for what is no decision
   */
  async waitFor(decision: Decision<Name>, signal?: AbortSignal, client?: string): Promise<Decision<Name>> {
    return (await this.#waitingRoom.holdCounted(decision, signal, client)) as Decision<Name>
  }

  /**
   * Calls a function as soon as it may go, see `acquire`, and resolves with what it returns. Slots that it holds are released then.
   *
   * @throws (rejects) as `acquire`, `WEIR_INVALID_OPTION` for what is no function, and with what the function throws
   */
  schedule<T>(key: string, run: () => T | PromiseLike<T>, options?: ScheduleOptions): Promise<T> {
    return scheduled(this, key, run, options)
  }

  /**
   * A function that calls another as soon as it may go, see `acquire`. It passes its `this` on, so it can replace a method, and has the
   * other's `name` and `length`. Slots are released when the returned promise settles: a generator function has only made its generator then.
   *
   * @param options as for `acquire`, and the key: a string, or a function that gets the same `this` and arguments
   * @throws WeirError `WEIR_INVALID_OPTION` for what is no function, and without a key
   *
   * @example
   * const send = throttler.wrap(sendMail, { key: ({ to }) => to })
   * Api.prototype.get = throttler.wrap(Api.prototype.get, { key: 'api.example.com' })
   */
  wrap<Args extends readonly unknown[], T, This = unknown>(
    run: (this: This, ...args: Args) => T | PromiseLike<T>,
    options: WrapOptions<Args, This>,
  ): (this: This, ...args: Args) => Promise<T> {
    return wrapped(this, run, options)
  }

  /**
   * Requests that wait, from the call on that makes them wait: right after 30 calls of `acquire` for a limit of 10 it is 20. If the store has to
   * decide (coordination `'leased'` and `'central'`), all 30 wait until it has answered.
   */
  get waiting(): number {
    return this.#waitingRoom.waiting
  }

  /**
   * Refunds units of an allowed decision, to the interval that they were taken from; of several policies, at each one its
   * own. Never more than the decision took. Slots are held until `release`.
   *
   * @param units default: all that is left of the decision's cost. Anything but a number > 0 refunds nothing, and
   * neither does a throttler that is closed.
   * @throws WeirError `WEIR_INVALID_OPTION` for what is no decision, such as the promise of one
   */
  refund(decision: Decision, units?: number): void
  /**
   * Refunds units of a key without a decision: at most those that this process counted and that still count (in the running interval, the
   * sliding window or the bucket). Not for `concurrency()`, and not with coordination `'central'`, because the store counts.
   *
   * @param units a finite number of at least 0
   * @param options `policy` is needed if there are several
   * @returns the units that came back; 0 once the throttler is closed
   * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_INVALID_KEY`
   *
   * @example
   * throttler.refund(userId, reserved - used, { policy: 'tokens' })
   */
  refund(key: string, units: number, options?: PolicyChoice): number
  refund(given: Decision | string, units?: number, options: PolicyChoice = {}): number | undefined {
    const back = typeof given === 'string' ? refundKey(given, units, options, this.#engine) : refund(given, units, this.#engine)
    this.#told()
    return back
  }

  /**
   * Releases the slots that an allowed request holds (`concurrency()`): it has ended. Who waits for one goes on at once. Adapters do it
   * by themselves, as do `schedule` and `wrap`. A second time changes nothing.
   *
   * @throws WeirError as `refund`
   */
  release(decision: Pick<Decision, 'parts'>): void {
    checkDecision(decision)
    giveBack(decision, Number.POSITIVE_INFINITY, 'slots', this.#engine)
    this.#waitingRoom.queues?.released(decision.parts)
    this.#told()
  }

  /**
   * Counts more units for an allowed request, e.g. when its response shows what it really cost. They count whether or not
   * they still fit, in the running interval, and the other nodes hear at once of a charge that passes the limit; `refund` takes
   * units back. A rejected request took nothing, so nothing is charged for it, at no policy: `block` its key if it is to pay.
   *
   * @param units a finite number > 0; anything else counts as nothing, with one `warning`. Nothing counts once the
   * throttler is closed.
   * @throws WeirError as `refund`
   */
  charge(decision: Decision, units: number): void
  /**
   * Counts units of a key without a decision, whether or not they fit. Not for `concurrency()`.
   *
   * @param units a finite number of at least 0
   * @param options `policy` is needed if there are several
   * @throws WeirError as `refund` by key
   */
  charge(key: string, units: number, options?: PolicyChoice): void
  charge(given: Decision | string, units: number, options: PolicyChoice = {}): void {
    if (typeof given === 'string') chargeKey(given, units, options, this.#engine)
    else charge(given, units, this.#engine)
    this.#told()
  }

  /**
   * Blocks a key at all nodes, whatever its counts are, for `duration` from now; replaces a block that is there. A full table has room
   * for `maxKeys` more keys with such blocks. Beyond that, this node only sends the block to the store, and emits `overflow`.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   */
  block(key: string, duration: Duration, options: BlockOptions = {}): void {
    block(key, duration, options, this.#engine)
    this.#told()
  }

  /**
   * Lifts the block of a key at all nodes, also one that exceeding the limit started. The key's counts stay.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   */
  unblock(key: string, options: BlockOptions = {}): void {
    unblock(key, options, this.#engine)
    this.#told()
  }

  /**
   * Begins a key's counts anew at all nodes, as if it had made no request yet: its cooldown ends, and how often it was
   * blocked is forgotten. Units count no more that other nodes hold and have not sent, and refunds of earlier requests
   * change nothing. A block by hand stays. While the store is away it holds here, and is told when the store is back.
   *
   * @param key what is counted; policies with `key: 'all'` count by `'all'`
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED`
   *
   * @example
   * if (await passwordMatches(user, password)) throttler.reset(user, { policy: 'login' })
   */
  reset(key: string, options: PolicyChoice = {}): void {
    reset(key, options, this.#engine)
    this.#waitingRoom.queues?.nudgeAll()
    this.#told()
  }

  /**
   * How much of its limits a key has used, in the order of the policies: the sum over all nodes, also of what they have not
   * sent. Takes some round trips of the store; when it does not answer within `timeout`, or there is none, it is what this
   * node knows, and `source` says so. For support and account pages, not for each request.
   *
   * @param key as for `check`: for policies with `key: 'all'` it is the counter that all share
   * @throws (rejects) WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED`
   *
   * @example
   * const [{ used, limit }] = await throttler.usage(userId, { policy: 'user' })
   */
  usage(key: string, options: UsageOptions = {}): Promise<readonly Usage<Name>[]> {
    return keptAlive(this.#engine.clock, usage(key, options, this.#engine)) as Promise<readonly Usage<Name>[]>
  }

  /**
   * Why the next request of a key would be allowed or rejected, for each policy: this process's count, the count of the others and its age,
   * the block with its end and origin, and the decision. It uses what this process knows. Nothing is counted, and no decision changes.
   *
   * @throws WeirError `WEIR_INVALID_KEY`, `WEIR_CLOSED`
   *
   * @example
   * console.table(throttler.explain(userId))
   */
  explain(key: string): readonly Explanation<Name>[] {
    const rows = explain(key, this.#engine)
    this.#told()
    return rows as readonly Explanation<Name>[]
  }

  /**
   * Swaps the rules while requests come in. A policy whose name, interval, algorithm and coordination stay the same
   * keeps its counts and blocks, whatever else changes.
   *
   * @param limits of single keys, in place of their policies' and of what requests say; default: those of the last `update`
   * @throws WeirError as `createThrottler`, and for a limit `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY` or `WEIR_INVALID_OPTION`; then
   * nothing has changed. `WEIR_CLOSED` after `close`
   */
  update(
    policies: readonly (AnyPolicyOptions<Req, Name> | PlannedPolicyOptions<Req, Name>)[],
    limits: readonly KeyLimit[] | undefined = undefined,
  ): void {
    this.#engine.update(policies as readonly AnyPolicyOptions<never>[], limits)
    this.#told()
  }

  /**
   * Adds a listener; returns a function that removes it. What a listener throws becomes a process warning.
   *
   * @throws WeirError `WEIR_INVALID_OPTION` for an event that does not exist, and for a listener that is no function
   */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    return this.#engine.on(name, listener)
  }

  /** Connects to the store and starts to exchange counts. Not needed: the first decision does it. */
  start(): this {
    this.#engine.start()
    this.#told()
    return this
  }

  /**
   * Ends with requests that wait, as `queue.onClose` says, then sends what is left, each within `closeTimeout`, and closes the store's connection. Decisions after it throw
   * `WEIR_CLOSED`. Safe to call twice.
   */
  close(): Promise<void> {
    return this.#engine.close()
  }
}
