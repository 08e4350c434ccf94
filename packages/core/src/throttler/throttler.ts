import type { ReserveOptions } from '../budget/options.ts'
import type { Receipt } from '../budget/receipt.ts'
import type { Costs } from '../decide/costs.ts'
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
import { Engine, type FlushOptions } from './engine.ts'
import { type Explanation, explain } from './explain.ts'
import type { KeyLimit } from './key-limits.ts'
import { chargeKey, forEachCost, refundKey } from './key-units.ts'
import type { ActionOptions, PolicyChoice } from './limiters-of.ts'
import { block, unblock } from './manual-blocks.ts'
import type { ThrottlerOptions } from './options.ts'
import { type CostsOption, charge, checkDecision, hasCosts, refund } from './refunds.ts'
import { reset, resetAll } from './reset.ts'
import { scheduled, wrapped } from './scheduled.ts'
import { type Usage, type UsageOptions, usage } from './usage.ts'
import type { WaitingRoom } from './waiting-room.ts'

/**
 * Creates a throttler. It connects at its first decision, or at `start()`.
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

/**
 * For adapters, which read it with `adapterOf`. The constructor defines it, because with isolatedDeclarations a class can't declare an
 * imported name.
 */
export interface Throttler<Name extends string = string, Req = unknown> {
  readonly [ADAPTER]: AdapterSide<Name, Req>
}

/** One process: decides immediately by its counts, and syncs them with the other processes in the background. */
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

  /**
   * The id of this process, new at each start.
   *
   * Throttlers that share a store's value are one process.
   */
  get nodeId(): string {
    return this.#engine.nodeId
  }

  /** The policies, checked and frozen, in their order. */
  get policies(): readonly Policy<Name>[] {
    return this.#engine.policies as readonly Policy<Name>[]
  }

  /** `'idle'` before the first decision, `'local'` without a store, `'connecting'`, `'synced'`, `'storeDown'` or `'closed'`. */
  get state(): ThrottlerState {
    return this.#engine.state
  }

  /**
   * Decides on one request immediately, and counts it if it is allowed. Every policy counts the key, and policies with `key: 'all'` count
   * all keys together. There is no request, so `match` is ignored, a `cost` function counts as 1, and a `limit` function as its
   * `fallbackLimit`.
   *
   * For requests, an adapter or a guard of `createGuard` reads the key.
   *
   * @param key the key that each policy counts (policies with `key: 'all'` share one counter). For requests, an adapter or a guard of
   * `createGuard` reads it
   * @param options the cost, or `{ cost, limit }`. A bad cost counts as 1, a bad limit as none, each with one `warning`
   * @throws WeirError `WEIR_INVALID_KEY` if the key is no string, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED` after `close`
   */
  check(key: string, options?: number | CheckOptions<Name>): Decision<Name> {
    return this.#path.check(key, options)
  }

  /**
   * Returns the decision that `check` would return now, by the counts of this process. Nothing is counted, no cooldown starts, and no key
   * is stored. A cost of 0 shows only whether the key is blocked.
   *
   * `remaining` shows the units that are left now. `usage` also includes the other processes.
   *
   * @param options the cost, or `{ cost, limit }`. With a cost of 0 it shows only whether the key is blocked
   */
  peek(key: string, options?: number | CheckOptions<Name>): Decision<Name> {
    const decision = this.#path.peek(key, options)
    this.#told()
    return decision
  }

  /**
   * As `check`, for policies whose requests may have to wait: for the store (`'leased'`, `'central'`) or because they are delayed. For
   * these, `check` throws `WEIR_ASYNC_POLICY`.
   *
   * Requests wait for the store at most for `storeTimeout`. Then the policy's `failMode` decides with `'central'`. With `'leased'` the
   * request is rejected, unless the store already counts as down. With `delay` they are delayed instead of rejected, and the decision shows
   * the state after the delay. A `delay` function may take 1 s.
   *
   * @see `@weir/core/docs/guides/delay.md`
   * @see `@weir/core/docs/reference/errors.md#weir_async_policy`
   */
  checkAsync(key: string, options?: number | CheckOptions<Name>): Promise<Decision<Name>> {
    return this.#path.delays
      ? this.#waitingRoom.check(key, options).then((decision) => {
          this.#path.tally(decision)
          return decision as Decision<Name>
        })
      : this.#path.checkAsync(key, options)
  }

  /** Delivers the events of a call to their listeners before it returns. */
  #told(): void {
    this.#engine.emitter.deliver()
  }

  /**
   * As `checkAsync`, but a rejected request waits for its turn. Throws an `AcquireError` if it can't make its timeout.
   *
   * Requests of one key and priority are allowed first come, first served, and one key after another if a policy counts them together. A
   * request is rejected immediately if it certainly can't make its timeout. A waiting request uses no units, and starts no cooldown.
   *
   * @throws (rejects) AcquireError with the reason `'timeout'`, `'aborted'`, `'queue-full'`, `'never-fits'` or `'closed'`. WeirError
   * `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   * @example
   * await throttler.acquire('api.example.com', { timeout: '5s' })
   * @see `@weir/core/docs/reference/errors.md#weir_not_acquired`
   */
  acquire(key: string, options?: AcquireOptions<Name>): Promise<Decision<Name>> {
    return this.#waitingRoom.acquire(key, options) as Promise<Decision<Name>>
  }

  /**
   * As `acquire`, but returns a rejection as a decision. By default no request waits.
   *
   * @param options as for `acquire`, with `timeout` 0 by default
   * @throws (rejects) AcquireError with the reason `'aborted'` or `'closed'`. WeirError as `acquire`
   * @example
   * const { allowed, retryAfterMs } = await throttler.tryAcquire('api.example.com', { timeout: '5s' })
   */
  tryAcquire(key: string, options?: AcquireOptions<Name>): Promise<Decision<Name>> {
    return this.#waitingRoom.acquire(key, options, true) as Promise<Decision<Name>>
  }

  /**
   * Waits for the `delayMs` of an allowed decision, and resolves with the decision at that time.
   *
   * @param signal if it is aborted, the decision's units are returned, and the requests behind it move up
   * @param client the waiting client: the number of its waiting requests is limited to the free positions (`maxWaiting` of `queue`).
   * Adapters pass its address
   * @throws (rejects) AcquireError with the reason `'aborted'`, `'queue-full'` or `'closed'`. The decision's units are then returned.
   * WeirError `WEIR_INVALID_OPTION` for a value that is no decision
   */
  async waitFor(decision: Decision<Name>, signal?: AbortSignal, client?: string): Promise<Decision<Name>> {
    return (await this.#waitingRoom.holdCounted(decision, signal, client)) as Decision<Name>
  }

  /**
   * Calls `run` as soon as it may go, and resolves with its result.
   *
   * It waits as `acquire`. Its slots are released when the function has settled.
   *
   * @throws (rejects) as `acquire`, `WEIR_INVALID_OPTION` for a value that is no function, and with the error of the function
   */
  schedule<T>(key: string, run: () => T | PromiseLike<T>, options?: ScheduleOptions<Name>): Promise<T> {
    return scheduled(this, key, run, options)
  }

  /**
   * Returns a function that calls `run` as soon as it may go, with the same `this`.
   *
   * It waits as `acquire`. It can replace a method, and has the other's `name` and `length`. Slots are released when the returned promise
   * settles. For a generator function, that is before the generator runs.
   *
   * @param options as for `acquire`, and the key: a string, or a function that gets the same `this` and arguments
   * @throws WeirError `WEIR_INVALID_OPTION` for a value that is no function, and without a key
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
   * Reserves units for a call whose real use is known only after it ends, such as a call of a language model. If one policy rejects it,
   * nothing is reserved at the others.
   *
   * `settle` of the receipt counts the real use. If nothing settles it, it settles itself after `ttl`. While the process runs, its units
   * count as used. If the process dies, its reservations with coordination `'leased'` and `'central'` are settled by the store. With
   * `'background'` their units stay counted until the interval ends or the bucket drains.
   *
   * For policies that never wait. For others use `reserveAsync`.
   *
   * @throws WeirError `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_UNKNOWN_POLICY`, `WEIR_ASYNC_POLICY`,
   * `WEIR_CLOSED` after `close`
   * @example
   * using call = throttler.reserve(user, { cost: { requests: 1, tokens: input + maxOutput } })
   * @see `@weir/core/docs/guides/budgets.md`
   */
  reserve(key: string, options: ReserveOptions<Name>): Receipt<Name> {
    return this.#engine.budget.reserve(key, options) as Receipt<Name>
  }

  /**
   * As `reserve`, for policies whose requests may have to wait, as with `checkAsync`.
   *
   * @throws (rejects) as `reserve`, without `WEIR_ASYNC_POLICY`
   * @example
   * const call = await throttler.reserveAsync(user, { cost: { tokens: 1_500, usd: 12_000 } })
   * @see `@weir/core/docs/guides/budgets.md`
   */
  reserveAsync(key: string, options: ReserveOptions<Name>): Promise<Receipt<Name>> {
    return keptAlive(this.#engine.clock, this.#engine.budget.reserveAsync(key, options)) as Promise<Receipt<Name>>
  }

  /**
   * The number of waiting requests.
   *
   * It counts from the call on that makes them wait: right after 30 calls of `acquire` for a limit of 10 it is 20. If the store has to
   * decide (coordination `'leased'` and `'central'`), all 30 wait until it has answered.
   */
  get waiting(): number {
    return this.#waitingRoom.waiting
  }

  /**
   * Refunds units to the interval from which they were taken, at most the decision's cost.
   *
   * With several policies they return to the interval of each. Slots stay in use until `release`.
   *
   * @param units default: all that is left of the decision's cost. `{ cost: { tokens: 900 } }` refunds at some policies, by name. Anything
   * but a number > 0 refunds nothing. After `close` nothing is refunded.
   * @throws WeirError `WEIR_INVALID_OPTION` for a value that is no decision, such as the promise of one. `WEIR_UNKNOWN_POLICY`
   */
  refund(decision: Decision, units?: number | CostsOption<Name>): void
  /**
   * Refunds units of a key without a decision: at most the units that this process counted and that still count.
   *
   * They count in the running interval, the sliding window or the bucket. Not for `concurrency()`, and not with coordination `'central'`,
   * because the store counts.
   *
   * @param units a finite number of at least 0
   * @param options `policy` is needed if there are several
   * @returns the units that came back, 0 once the throttler is closed
   * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_INVALID_KEY`
   *
   * @example
   * throttler.refund(userId, reserved - used, { policy: 'tokens' })
   * @see `@weir/core/docs/reference/throttler.md#refund-and-charge-by-key`
   */
  refund(key: string, units: number, options?: PolicyChoice): number
  /**
   * Refunds units of a key at several policies.
   *
   * @returns the units that came back at each policy, by name
   * @throws WeirError as for one policy
   */
  refund(key: string, units: CostsOption<Name>): Costs<Name>
  refund(given: Decision | string, units?: number | CostsOption, options: PolicyChoice = {}): number | Costs | undefined {
    const back =
      typeof given !== 'string'
        ? refund(given, units, this.#engine)
        : hasCosts(units)
          ? forEachCost('refund', given, units, this.#engine)
          : refundKey(given, units, options, this.#engine)
    this.#told()
    return back
  }

  /**
   * Releases the slots of a request that has ended (`concurrency()`). Adapters, `schedule` and `wrap` call it themselves.
   *
   * A request that waits for a slot continues immediately. A second call changes nothing.
   *
   * @throws WeirError as `refund`
   */
  release(decision: Pick<Decision, 'parts'>): void {
    checkDecision(decision)
    this.#engine.release(decision)
    this.#told()
  }

  /**
   * Counts more units for an allowed request, whether or not they fit. A rejected request isn't charged.
   *
   * Use it for example when a response shows the real cost. The units count in the running interval. A charge that exceeds the limit is
   * synced to the other processes immediately. `refund` returns units. If a rejected request must pay, `block` its key.
   *
   * @param units a finite number > 0, or `{ cost: { tokens: 900 } }` for some policies, by name. Anything else counts as nothing, with one
   * `warning`. After `close` nothing is counted.
   * @throws WeirError as `refund`
   */
  charge(decision: Decision, units: number | CostsOption<Name>): void
  /**
   * Counts units of a key without a decision, whether or not they fit.
   *
   * Not for `concurrency()`.
   *
   * @param units a finite number of at least 0
   * @param options `policy` is needed if there are several
   * @throws WeirError as `refund` by key
   * @see `@weir/core/docs/reference/throttler.md#refund-and-charge-by-key`
   */
  charge(key: string, units: number, options?: PolicyChoice): void
  /**
   * Counts units of a key at several policies, whether or not they fit.
   *
   * @throws WeirError as `refund` by key
   */
  charge(key: string, units: CostsOption<Name>): void
  charge(given: Decision | string, units: number | CostsOption, options: PolicyChoice = {}): void {
    if (typeof given !== 'string') charge(given, units, this.#engine)
    else if (hasCosts(units)) forEachCost('charge', given, units, this.#engine)
    else chargeKey(given, units, options, this.#engine)
    this.#told()
  }

  /**
   * Blocks a key in all processes, even in processes that start later. It replaces an existing block.
   *
   * The block lasts for `duration` from now, whatever the key's counts are. A full table has space for `maxKeys` more keys with such
   * blocks. Beyond that, this process only sends the block to the store, and emits `overflow`.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   */
  block(key: string, duration: Duration, options: ActionOptions = {}): void {
    block(key, duration, options, this.#engine)
    this.#engine.audit('block', key, options)
    this.#told()
  }

  /**
   * Lifts the block of a key in all processes, even a cooldown. Its counts stay.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   */
  unblock(key: string, options: ActionOptions = {}): void {
    unblock(key, options, this.#engine)
    this.#engine.audit('unblock', key, options)
    this.#told()
  }

  /**
   * Resets a key's counts in all processes, as if it had made no request yet.
   *
   * Its cooldown ends, and its earlier blocks no longer make the next one longer. Units that other processes have not sent yet no longer
   * count, and refunds of earlier requests change nothing. A manual block stays. While the store is down, the reset applies in this
   * process, and is sent once the store is back.
   *
   * @param key the counted key, which is `'all'` for policies with `key: 'all'`
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED`
   * @example
   * if (await passwordMatches(user, password)) throttler.reset(user, { policy: 'login' })
   * @see `@weir/core/docs/reference/throttler.md#reset`
   */
  reset(key: string, options: ActionOptions = {}): void {
    reset(key, options, this.#engine)
    this.#engine.audit('reset', key, options)
    this.#waitingRoom.queues?.nudgeAll()
    this.#told()
  }

  /**
   * Resets the counts of all keys in all processes, as `reset` does for one.
   *
   * Other processes apply it when the store announces it. With a store, it needs `fixedWindow()` or `slidingCounter()` with coordination
   * `'background'` or `'periodic'`.
   *
   * @throws WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED`
   * @see `@weir/core/docs/reference/throttler.md#reset`
   */
  resetAll(options: ActionOptions = {}): void {
    resetAll(options, this.#engine)
    this.#engine.audit('resetAll', '', options)
    this.#waitingRoom.queues?.nudgeAll()
    this.#told()
  }

  /**
   * Resolves with the units that a key has used in all processes, for each policy.
   *
   * It includes counts that the processes have not sent yet. It takes some round trips to the store. Without a store, or without an answer
   * within `timeout`, it contains only the counts of this process, and `source` is `'node'`. Use it for support and account pages, not for
   * each request.
   *
   * @param key as for `check`. Policies with `key: 'all'` return the counter that all share
   * @throws (rejects) WeirError `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`, `WEIR_CLOSED`
   * @example
   * const [{ used, limit }] = await throttler.usage(userId, { policy: 'user' })
   * @see `@weir/core/docs/reference/throttler.md#usage`
   */
  usage(key: string, options: UsageOptions = {}): Promise<readonly Usage<Name>[]> {
    return keptAlive(this.#engine.clock, usage(key, options, this.#engine)) as Promise<readonly Usage<Name>[]>
  }

  /**
   * Returns why the next request of a key would be allowed or rejected, for each policy.
   *
   * It shows this process's count, the count of the others and its age, the block with its end and origin, and the decision. It uses the
   * counts of this process. Nothing is counted, and no decision changes.
   *
   * @throws WeirError `WEIR_INVALID_KEY`, `WEIR_CLOSED`
   * @example
   * console.table(throttler.explain(userId))
   * @see `@weir/core/docs/reference/throttler.md#explain`
   */
  explain(key: string): readonly Explanation<Name>[] {
    const rows = explain(key, this.#engine)
    this.#told()
    return rows as readonly Explanation<Name>[]
  }

  /**
   * Replaces the rules. A policy whose name, interval, algorithm, coordination and `warmUp` stay the same keeps its counts. The units in a
   * bucket stay, and leave at the new pace. Blocks stay with the policy's name. `limits` is a list of `{ policy, key, limit }`. Without it,
   * the limits of the last `update` stay.
   *
   * Requests may come in meanwhile.
   *
   * @param limits limits of single keys, which take precedence over limits of policies and requests. By default the limits of the last
   * `update` stay
   * @throws WeirError as `createThrottler`, and for a limit `WEIR_UNKNOWN_POLICY`, `WEIR_INVALID_KEY` or `WEIR_INVALID_OPTION`. Then
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
   * Adds a listener, and returns a function that removes it.
   *
   * An error of a listener becomes a process warning.
   *
   * @throws WeirError `WEIR_INVALID_OPTION` for an event that does not exist, and for a listener that is no function
   * @see `@weir/core/docs/reference/throttler.md#events`
   */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    return this.#engine.on(name, listener)
  }

  /**
   * Connects to the store now, instead of at the first decision.
   *
   * You don't need to call it.
   */
  start(): this {
    this.#engine.start()
    this.#told()
    return this
  }

  /**
   * Sends everything that was counted so far to the store, and resolves when the store has it.
   *
   * For platforms that stop a process between two requests, or end it after each one: their last units would reach the other processes
   * late or never. A process that goes on running sends them by itself. It doesn't wait for the use that open reservations have reported,
   * which is sent within a second.
   *
   * @returns whether the store has everything. False after the timeout, for example if the store is down: then the units are sent later.
   * True without a store
   * @throws (rejects) WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
   * @example
   * await throttler.flush()
   * waitUntil(throttler.flush())
   * @see `@weir/core/docs/guides/where-it-runs.md`
   */
  flush(options: FlushOptions = {}): Promise<boolean> {
    return keptAlive(this.#engine.clock, this.#engine.flush(options))
  }

  /**
   * Finishes or rejects waiting requests, sends the remaining counts, each within `closeTimeout`, and closes the connection. Later
   * decisions throw `WEIR_CLOSED`.
   *
   * `queue.onClose` decides about the waiting requests. Safe to call twice.
   *
   * @see `@weir/core/docs/reference/errors.md#weir_closed`
   */
  close(): Promise<void> {
    return this.#engine.close()
  }
}
