import type { ReservationOptions } from '../budget/options.ts'
import type { Receipt } from '../budget/receipt.ts'
import type { Decision } from '../decide/decision.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import type { RequestPath } from '../decide/request-path.ts'
import { idOfKey } from '../keys/key-id.ts'
import { bounded } from '../keys/key-text.ts'
import { invalidOption, type WeirError } from '../report/errors.ts'
import { type Clock, keptAlive } from '../time/clock.ts'
import type { Coordinated } from './coordinator.ts'
import type { Delayed } from './delays.ts'
import type { Engine } from './engine.ts'
import type { Names } from './names.ts'

/**
 * The property of a throttler with its members for adapters. The ESM and the CommonJS build share it, and a user's completion list doesn't
 * show it.
 */
export const ADAPTER: unique symbol = Symbol.for('weir.adapter')

/**
 * The members of a throttler that adapters need, and users don't.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` if it is no throttler
 *
 * @example
 * const decision = adapterOf(throttler).decide([userId, undefined], [1, 1])
 */
export function adapterOf<Name extends string, Req>(throttler: { readonly [ADAPTER]: AdapterSide<Name, Req> }): AdapterSide<Name, Req> {
  // JavaScript may pass anything.
  const side = (throttler as Partial<typeof throttler> | undefined)?.[ADAPTER]
  if (side === undefined)
    throw invalidOption('throttler', throttler, 'the throttler that createThrottler() returned, or middleware.throttler')
  return side
}

/** A throttler as adapters see it: one key and one cost for each policy, and everything that reads or reports its state. */
export class AdapterSide<Name extends string = string, Req = unknown> {
  /** The throttler's time and timers, by which adapters wait. */
  readonly clock: Clock
  readonly #engine: Engine
  readonly #path: RequestPath<Name>

  constructor(engine: Engine) {
    this.clock = engine.clock
    this.#engine = engine
    this.#path = engine.path as RequestPath<Name>
  }

  /** The rules of all throttlers of this process with the same store. Undefined without a store. */
  get names(): Names | undefined {
    return this.#engine.coordinator?.names
  }

  /** As `policies` of the throttler. */
  get policies(): readonly Policy<Name>[] {
    return this.#engine.policies as readonly Policy<Name>[]
  }

  /** The options that the policies were made from, in the same order: adapters read `key`, `match` and `cost` here. */
  get rules(): readonly PolicyOptions<Req, Name>[] {
    return this.#engine.rules as readonly PolicyOptions<Req, Name>[]
  }

  /** Grows with each `update`: anything made from `policies` or `rules` must be made again. */
  get version(): number {
    return this.#engine.version
  }

  /** Whether requests to some policy may have to wait, for the store or for capacity: then adapters use `decideAsync`. */
  get waits(): boolean {
    return this.#path.waits || this.#path.delays
  }

  /** The state that `snapshot`, `cluster` and `auditLog` of `@weir/core/inspect` read. */
  get inspected(): Coordinated {
    return this.#engine
  }

  /**
   * Decides on a request and counts it if it is allowed. The arrays contain one entry per policy, in their order, and `undefined` where a
   * policy does not apply. They are read during the call only and may be reused.
   *
   * @param applying the indexes of the policies that apply, ascending, so that the others need no check. Only the first `applied`
   * are valid
   * @param limits for each policy the limit of its key, as `limit` of `check`. Undefined to use the policy's own
   * @throws WeirError `WEIR_CLOSED` after `close`
   */
  decide(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
    limits?: readonly (number | undefined)[],
  ): Decision<Name> {
    return this.#path.decide(keys, costs, applying, applied, limits)
  }

  /** As `peek` of the throttler, with the parameters of `decide`. */
  peekEach(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying: readonly number[],
    limits: readonly (number | undefined)[] | undefined,
  ): Decision<Name> {
    const decision = this.#path.peekEach(keys, costs, applying, limits)
    this.#engine.emitter.deliver()
    return decision
  }

  /**
   * As `decide`, for policies whose requests may have to wait. Returns a promise only if this request must wait.
   *
   * @param request the request, which may be delayed. Null to reject it instead
   * @throws (rejects) AcquireError with the reason `'aborted'` if the client of a delayed request has left. Nothing is counted then
   */
  decideAsync(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying?: readonly number[],
    applied?: number,
    limits?: readonly (number | undefined)[],
    request?: Delayed | null,
  ): Decision<Name> | Promise<Decision<Name>> {
    const decision = this.#decideOrHold(keys, costs, applying, applied, limits, request)
    return decision instanceof Promise ? decision.then((decided) => this.#tallied(decided)) : this.#tallied(decision)
  }

  /** @throws WeirError `WEIR_INVALID_OPTION` if the store can't keep open reservations, which one of these policies needs */
  checkReservations(which: (policy: string) => boolean): void {
    for (const limiter of this.#engine.limiters) if (which(limiter.policy.name)) this.#engine.budget.checkStore(limiter)
  }

  /** The costs of a request whose units are reserved: whole numbers that never fit if a policy's `maxReservation` is exceeded. */
  reservable(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    limits: readonly (number | undefined)[] | undefined,
  ): readonly number[] {
    const { budget } = this.#engine
    return costs.map((cost, i) => (keys[i] === undefined ? cost : budget.capped(i, keys[i], Math.ceil(cost), limits?.[i])))
  }

  /** Reserves the units of a decision, until its response ends. */
  receiptOf(decision: Decision<Name>, options: ReservationOptions): Receipt<Name> {
    return this.#engine.budget.receiptOf(decision, options) as Receipt<Name>
  }

  /** Makes `stale` work, which costs two timers per second. */
  watchStale(): void {
    this.#engine.coordinator?.watchStale()
  }

  /** Whether the process has just stood still for a second or longer, so that a decision would rest on old counts. */
  get stale(): boolean {
    return this.#engine.coordinator?.stale === true
  }

  /** Sends due counts. Resolves once the connection has them, without waiting for an answer. */
  async sendDue(): Promise<void> {
    await this.#engine.coordinator?.sendDue()
  }

  /** Reads the keys of a request from the store. Resolves when that is done, or after `timeout` milliseconds. */
  refresh(keys: readonly (string | undefined)[], applying: readonly number[], timeout: number): Promise<void> {
    const { coordinator, limiters } = this.#engine
    const synced = this.#engine.meters()
    const read = applying.flatMap((place) => {
      const meter = synced.find((one) => one === limiters[place]?.meter)
      const key = keys[place]
      return meter === undefined || key === undefined ? [] : [{ meter, id: idOfKey(bounded(key)) }]
    })
    return keptAlive(this.clock, coordinator?.refresh(read, timeout) ?? Promise.resolve())
  }

  /** Reports an error that a request must not suffer from, once per code and subject. */
  warn(error: WeirError, subject = ''): void {
    this.#engine.warn(error, subject)
    this.#engine.emitter.deliver()
  }

  #decideOrHold(
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying: readonly number[] | undefined,
    applied: number | undefined,
    limits: readonly (number | undefined)[] | undefined,
    request: Delayed | null | undefined,
  ): Decision | Promise<Decision> {
    // A limit of `checkAsync` must not apply to this request.
    if (limits === undefined) this.#path.limitEach(keys, undefined)
    if (!this.#path.delays || request === null) return this.#path.decideAsync(keys, costs, applying, applied, limits)
    const places = applying?.slice(0, applied) ?? keys.map((_, place) => place)
    return this.#engine.waitingRoom.decide({ keys: [...keys], costs: [...costs], places, limits: limits && [...limits] }, request)
  }

  #tallied(decision: Decision): Decision<Name> {
    this.#path.tally(decision)
    return decision as Decision<Name>
  }
}
