import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { changed, type Decision, NO_POLICY } from '../decide/decision.ts'
import { requireKeys } from '../decide/request-rule.ts'
import { invalidOption, isWeirError } from '../report/errors.ts'
import type { RejectionReason } from '../report/stats.ts'
import { type NoAnswer, type Patience, tell } from '../report/user-function.ts'
import type { Answering } from '../report/when-ended.ts'
import { type AdapterSide, adapterOf } from '../throttler/adapter-side.ts'
import { createThrottler, type Throttler } from '../throttler/throttler.ts'
import { loadCode } from '../time/load-code.ts'
import { type AdapterOptions, afterFreezeOf, callbackTimeout, splitOptions, type ThrottleInput } from './adapter-options.ts'
import { Answers } from './answer/answer.ts'
import type { SetHeader } from './answer/headers.ts'
import type { Rejection } from './answer/rejection.ts'
import { type Compiled, compile } from './compiled.ts'
import { decideUncounted } from './counted.ts'
import { clientReader, DelayedRequest } from './delayed-request.ts'
import { Gates } from './gates.ts'
import { keepSlots } from './handler-end.ts'
import { type Handled, Handling } from './handling.ts'
import { type Report, reporter } from './reports.ts'
import type { Reading } from './request/later.ts'
import type { RequestReader } from './request/reader.ts'
import { type Reservations, reservationsBy } from './reservations.ts'
import { Settlement } from './settlement.ts'

/** The decision for a request on the deny list. */
const DENIED = Object.freeze(changed(NO_POLICY, { allowed: false, reason: 'denied', limit: 0, remaining: 0 }) as Decision<never>)

/** The longest wait for a sync after the process has stood still, in milliseconds. */
const FRESH_WITHIN = 50

/** Loaded with the first delayed request, because most applications have none. */
let holdRequest: typeof import('./hold-request.ts').holdRequest | undefined

/**
 * Does everything for an adapter except calling its framework. For each request an adapter
 *
 * 1. calls `check`. If it returns `undefined`, the request continues untouched.
 * 2. If the decision allows the request, it sets the fields of `writeHeaders`, calls `watch`, and continues.
 * 3. Otherwise it sends the result of `reject`, unless `handle` answers.
 *
 * `check`, `reject` and `handle` return a promise only if a request has to wait. It may wait for a function of the options, for the store
 * (coordination `'leased'` and `'central'`), to keep a pace (`leakyBucket()`), or for capacity (`delay`). No method throws, and no promise
 * rejects. Any error is reported as a `warning` event of the throttler, once per cause, and the request continues.
 *
 * @typeParam Args the arguments that the framework calls a middleware with
 */
export class Guard<Req, Args extends readonly unknown[], Name extends string = string> {
  /** The throttler that decides. It comes from the options, or was made from them. */
  readonly throttler: Throttler<Name, Req>
  readonly side: AdapterSide<Name, Req>
  /** Whether this guard made its throttler, and so the adapter has to close it. */
  readonly owned: boolean
  /** Whether it reserves units of requests: the option `estimate`. */
  readonly reserves: boolean
  /** Whether rejections go to the framework's error handler, as a `ThrottledError`. */
  readonly throws: boolean
  readonly #options: AdapterOptions<Req, Args, Name>
  readonly #reader: RequestReader<Req>
  readonly #which: (policy: string) => boolean
  #compiled: Compiled<Req>
  /** Undefined if no option skips or denies requests. */
  readonly #gates: Gates<Req> | undefined
  /** Undefined if nothing changes because of a response. */
  readonly #settlement: Settlement<Args, Name> | Reservations<Req, Args, Name> | undefined
  /** Undefined if no units are reserved. */
  readonly #reservations: Reservations<Req, Args, Name> | undefined
  readonly #patience: Patience
  /** Whether requests wait for a sync after the process has stood still. */
  readonly #syncs: boolean
  readonly #clientOf: (request: unknown) => string | undefined
  readonly #answers: Answers<Req, Name>
  readonly #handling: Handling<Args, Name>
  /** Reports a cause of trouble, the first time only. */
  readonly report: Report
  readonly #untold = (failure: NoAnswer): void => this.report('onRejected', 'Option "onRejected"', failure)

  /**
   * @param input a throttler, or options
   * @param reader reads the framework's requests
   * @param which returns whether this guard uses a policy of the throttler with this name; default: all
   * @throws WeirError for invalid options, with the option's name
   */
  constructor(input: ThrottleInput<Req, Args, Name>, reader: RequestReader<Req>, which: (policy: string) => boolean = () => true) {
    const split = splitOptions(input, reader?.options)
    const { own } = split
    const needed = ['method', 'path', 'route', 'ip', 'header'] as const
    if (needed.some((method) => typeof reader?.[method] !== 'function')) {
      const allowed = `nodeReader, imported from "@weir/core/adapter", or an object with the functions ${needed.join(', ')}`
      throw invalidOption('reader', reader, allowed)
    }
    // Checked before a throttler is made, because that would register its policies' names at the store.
    requireKeys(split.given)
    const { store, policies } = split.make
    const create = () => createThrottler(split.make)
    const throttler = split.throttler ?? (reader.bundled && store?.reload ? store.reload(policies, create) : create())
    this.throttler = throttler
    const side = adapterOf<Name, Req>(throttler)
    this.side = side
    this.#patience = { clock: side.clock, timeout: callbackTimeout(own) }
    this.owned = split.throttler === undefined
    // Where requests drive everything, all requests would wait after each pause.
    this.#syncs = afterFreezeOf(own, side.clock.driven ? undefined : reader.afterFreeze) === 'sync'
    if (this.#syncs) side.watchStale()
    this.throws = own.throwOnReject === true
    this.#options = own
    this.#reader = reader
    this.#clientOf = clientReader(reader, own.ipv6Subnet)
    this.#which = which
    this.report = reporter(side)
    const settles = own.skipFailedRequests === true || own.skipSuccessfulRequests === true
    this.reserves = own.estimate !== undefined
    this.#reservations = reservationsBy(own, this, which, this.#patience)
    this.#settlement = this.#reservations ?? (settles ? new Settlement(own, throttler, this.#patience, this.report) : undefined)
    this.#answers = new Answers(own, reader, this.#patience, this.report)
    this.#handling = new Handling(own.handler, this.#patience, this.report)
    const gates = new Gates(own, reader, this.#patience, this.report, (error, subject) => side.warn(error, subject))
    this.#gates = gates.none ? undefined : gates
    // Last, so that a constructor that throws has changed nothing.
    side.inspected.serveRequests()
    this.#compiled = this.#compile()
  }

  /**
   * Decides a request. Returns a promise only if the request has to wait. The promise never rejects.
   *
   * @param earlier the decision that this or another guard has already made about the request. A throttler counts a request once, even if
   * it is used in several places. Places with their own limits count it once each.
   * @param response the response to the request. If its client disconnects during a delay, the request's reservation is cancelled. Slots
   * (`concurrency()`) are released when it ends; see also `handlerStarts`. Without it the caller releases them:
   * `guard.throttler.release(decision)`
   * @returns undefined if the request is skipped; null if its client disconnected during the wait, or before it got a slot. Then don't
   * start the handler and send no response
   */
  check(request: Req, earlier?: Decision | null): Decision<Name> | undefined | Promise<Decision<Name> | undefined>
  check(
    request: Req,
    earlier: Decision | null | undefined,
    response: Answering,
  ): Decision<Name> | undefined | null | Promise<Decision<Name> | undefined | null>
  check(
    request: Req,
    earlier?: Decision | null,
    response?: Answering,
  ): Decision<Name> | undefined | null | Promise<Decision<Name> | undefined | null> {
    const decision = this.#check(request, earlier, response)
    const { holds, slots } = this.#compiled
    if (!holds && !slots && this.#reservations === undefined) return decision
    if (decision instanceof Promise) return decision.then((decided) => (decided === null ? null : this.#attend(request, decided, response)))
    return this.#attend(request, decision, response)
  }

  /**
   * Resolves with the decision that `check` would make about this request now, as far as this process knows. Nothing is counted, no
   * cooldown starts, no function is called for a rejection, and the request never waits for the store or for a slot. `remaining` is the
   * quota without this request. The promise never rejects.
   *
   * @returns undefined if `check` would skip the request
   */
  async peek(request: Req): Promise<Decision<Name> | undefined> {
    try {
      const passes = await this.#gates?.ask(request)
      if (passes === true) return undefined
      const decision = passes === false ? DENIED : await this.#look(request)
      return decision?.allowed === false && this.#options.dryRun === true ? asDryRun(decision) : decision
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Sets the response headers with the client's limits. */
  writeHeaders<Res>(decision: Decision<Name>, response: Res, set: SetHeader<Res>): void {
    try {
      this.#compiled.headers.write(decision, response, set)
    } catch (error) {
      // The response has begun, e.g. by an earlier middleware that streams.
      this.report('headers', 'The rate limit fields could not be set', error)
    }
  }

  /** The answer to a rejected request. Its body suits the client, or is the `message` of the options. */
  reject(request: Req, decision: Decision<Name>): Rejection<Name> | Promise<Rejection<Name>> {
    return this.#answers.make(request, decision, this.#compiled.headers)
  }

  /**
   * Calls the `handler` of the options, and waits until its promise resolves.
   *
   * @param response the handler's response. If the handler fails after it has begun to answer, the response is destroyed because it is
   * incomplete
   * @param keep receives the handler's result, or the value of its promise, for frameworks whose handlers return the response
   * @returns `'failed'` if there is no handler, too
   */
  handle(
    rejection: Rejection<Name>,
    args: Args,
    response: ServerResponse | Http2ServerResponse,
    keep?: (value: unknown) => void,
  ): Handled | Promise<Handled> {
    return this.#handling.handle(rejection, args, response, keep)
  }

  /** Calls `answer` if a handler, whose promise has resolved, has not answered within a further `callbackTimeout`. */
  expect(answered: () => boolean, answer: () => void): void {
    this.#handling.expect(answered, answer)
  }

  /**
   * Waits for the end of the response if an option refunds some requests, or reserves units (`estimate`).
   *
   * @param args the arguments that the framework called the middleware with
   */
  watch(decision: Decision<Name>, response: ServerResponse | Http2ServerResponse, args: Args): void {
    try {
      this.#settlement?.watch(decision, response, args)
    } catch (error) {
      this.report('settle', 'The end of a response could not be waited for', error)
    }
  }

  /** Does the same as `watch` if there is no connection to wait for, for example in tests. `status` is the status of the response. */
  settle(decision: Decision<Name>, status: number, args: Args): void {
    if (this.#compiled.slots) this.throttler.release(decision)
    this.#settlement?.settle(decision, status, true, args)
  }

  #check(request: Req, earlier: Decision | null | undefined, response: Answering | undefined): Decided<Name> {
    try {
      if (this.#gates !== undefined) {
        const passes = this.#gates.ask(request)
        if (passes instanceof Promise) return this.#decideAfter(passes, request, earlier, response)
        if (passes !== undefined) return this.#passed(request, passes)
      }
      return this.#decide(request, earlier, response)
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Accompanies a request from its decision to its end. */
  #attend(
    request: Req,
    decision: Decision<Name> | undefined,
    response: Answering | undefined,
  ): Decision<Name> | undefined | null | Promise<Decision<Name> | undefined | null> {
    const { holds, slots } = this.#compiled
    if (slots && response !== undefined && decision !== undefined && !keepSlots(this.throttler, decision, response)) return null
    const ready = holds ? this.#hold(request, decision, response) : decision
    if (this.#reservations === undefined) return ready
    return ready instanceof Promise ? ready.then((held) => this.#reserve(held, response)) : this.#reserve(ready, response)
  }

  /** Reserves the units of an allowed request. */
  #reserve(decision: Decision<Name> | undefined | null, response: Answering | undefined): Decision<Name> | undefined | null {
    if (!decision?.allowed) return decision
    try {
      return (this.#reservations as Reservations<Req, Args, Name>).open(decision, response)
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Delays a request to keep a pace. */
  #hold(
    request: Req,
    decision: Decision<Name> | undefined,
    response: Answering | undefined,
  ): Decision<Name> | undefined | Promise<Decision<Name> | undefined | null> {
    if (decision === undefined || !decision.allowed || decision.delayMs === 0) return decision
    // If the code can't be loaded, the pace is kept even if the client has disconnected.
    const client = this.#clientOf(request)
    const held =
      holdRequest?.(this.throttler, decision, response, client) ??
      loadCode(() => import('./hold-request.ts')).then(
        (loaded) => {
          holdRequest = loaded.holdRequest
          return loaded.holdRequest(this.throttler, decision, response, client)
        },
        () => this.throttler.waitFor(decision, undefined, client),
      )
    return held.then(
      (held) => (held === null || held.allowed ? held : this.#after(request, held)),
      (error: unknown) => this.#pass(error),
    )
  }

  /** Decides as `#decide` does, but counts nothing. */
  async #look(request: Req): Promise<Decision<Name> | undefined> {
    if (this.#compiled.version !== this.side.version) this.#compiled = this.#compile()
    const { rules, version } = this.#compiled
    this.#reservations?.begin(request)
    const applies = rules.evaluate(request)
    if (applies === false) return undefined
    if (applies === true) return this.side.peekEach(rules.keys, rules.costs, rules.applying.slice(0, rules.applied), rules.limits)
    const read = await applies
    if (version !== this.side.version) return this.#look(request)
    return read && this.side.peekEach(read.keys, read.costs, read.applying, read.limits)
  }

  /** Decides a request that no gate has settled. */
  #decide(request: Req, earlier: Decision | null | undefined, response: Answering | undefined): Decided<Name> {
    if (earlier !== undefined && earlier !== null && this.#counted(earlier)) return undefined
    if (this.#compiled.version !== this.side.version) this.#compiled = this.#compile()
    const { rules } = this.#compiled
    this.#reservations?.begin(request)
    const applies = rules.evaluate(request)
    if (applies === false) return undefined
    if (applies !== true) return this.#decideLater(request, applies, response)
    const { keys, costs, applying, applied, limits } = rules
    if (this.#syncs && this.side.stale) return this.#decideLater(request, Promise.resolve(copyOf(rules)), response)
    return this.#ask(request, keys, costs, applying, applied, limits, response)
  }

  #ask(
    request: Req,
    keys: readonly (string | undefined)[],
    given: readonly number[],
    applying: readonly number[],
    applied: number,
    limits: readonly (number | undefined)[] | undefined,
    response: Answering | undefined,
  ): Decided<Name> {
    const { side } = this
    const { names, waits } = side
    const costs = this.#reservations === undefined ? given : side.reservable(keys, given, limits)
    const delayed = waits && this.#options.dryRun !== true ? new DelayedRequest(request, response, this.#clientOf, this.#patience) : null
    const decision =
      names?.sharing === true
        ? decideUncounted(names, side, request as object, keys, costs, applying.slice(0, applied), limits, delayed)
        : waits
          ? side.decideAsync(keys, costs, applying, applied, limits, delayed)
          : side.decide(keys, costs, applying, applied, limits)
    if (decision === undefined) return undefined
    if (!(decision instanceof Promise)) return this.#after(request, decision)
    return decision.then(
      (decided) => this.#after(request, decided),
      // Other reasons reject a request.
      (error: unknown) => (isWeirError(error) && error.code === 'WEIR_NOT_ACQUIRED' ? null : this.#pass(error)),
    )
  }

  /** Decides as `#decide` does, after the keys and costs of the request have been read. */
  async #decideLater(
    request: Req,
    reading: Promise<Reading | undefined>,
    response: Answering | undefined,
  ): Promise<Decision<Name> | undefined | null> {
    const { version } = this.#compiled
    try {
      const read = await reading
      const stale = read !== undefined && this.#syncs && this.side.stale
      if (stale) await this.side.refresh(read.keys, read.applying, FRESH_WITHIN)
      // The request was read with the old rules, whose indexes may differ.
      if (version !== this.side.version) return await this.#decide(request, undefined, response)
      if (read === undefined) return undefined
      const decision = await this.#ask(request, read.keys, read.costs, read.applying, read.applying.length, read.limits, response)
      // The process may be frozen again right after its response. Until it runs again, other processes would miss this request.
      if (stale) await this.side.sendDue()
      return decision
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Decides as `#decide` does, after the gates have finished. */
  async #decideAfter(
    gates: Promise<boolean | undefined>,
    request: Req,
    earlier: Decision | null | undefined,
    response: Answering | undefined,
  ): Promise<Decision<Name> | undefined | null> {
    try {
      const passes = await gates
      return await (passes === undefined ? this.#decide(request, earlier, response) : this.#passed(request, passes))
    } catch (error) {
      return this.#pass(error)
    }
  }

  #passed(request: Req, passes: boolean): Decision<Name> | undefined {
    if (passes) return undefined
    this.side.inspected.requests.reasons.denied++
    return this.#after(request, DENIED)
  }

  #compile(): Compiled<Req> {
    return compile(this.side, this.#options, this.#reader, this.#patience, this.#which, this.#reservations)
  }

  /** Whether a decision was made by the same throttler, and by policies that this guard uses. */
  #counted(decision: Decision): boolean {
    const { policies } = this.side
    const { policy } = decision
    if (policy === undefined) return false
    if ((policies as readonly unknown[]).includes(policy)) return this.#which(policy.name)
    // After an update, a policy with the same counts has the same id. Another throttler's policy may have the same id too.
    return decision.parts.some(
      ({ policy }) =>
        policy !== undefined &&
        this.#which(policy.name) &&
        this.side.inspected.hadPolicy(policy) &&
        policies.some(({ id }) => id === policy.id),
    )
  }

  #after(request: Req, decision: Decision<Name>): Decision<Name> {
    if (decision.allowed && !decision.dryRun) return decision
    const { onRejected, dryRun } = this.#options
    if (onRejected !== undefined) tell(this.#untold, onRejected, request, decision)
    if (dryRun !== true || decision.allowed) return decision
    this.side.inspected.requests.passedAnyway(decision.reason as RejectionReason)
    return asDryRun(decision)
  }

  #pass(error: unknown): undefined {
    this.report(isWeirError(error) ? error.code : 'check', 'Weir could not decide a request, and let it pass', error)
    return undefined
  }
}

/** The reading of a request. The rules read the next one into the same arrays. */
function copyOf({ keys, costs, applying, applied, limits }: Compiled<never>['rules']): Reading {
  return { keys: [...keys], costs: [...costs], applying: applying.slice(0, applied), limits: limits && [...limits] }
}

/** A decision. Undefined for a skipped request, and null if the client disconnected during a delay. */
type Decided<Name extends string> = Decision<Name> | undefined | Promise<Decision<Name> | undefined | null>

/** A rejection that is only reported. */
function asDryRun<Name extends string>(decision: Decision<Name>): Decision<Name> {
  return changed(decision, { allowed: true, dryRun: true })
}

/**
 * Makes a guard, the part of a middleware that all frameworks share, and starts its throttler unless the reader is `bundled`.
 *
 * @param input a throttler, or options
 * @param reader how the framework's request is read
 * @throws WeirError for options that can't be used, naming the option
 *
 * @example
 * const guard = createGuard({ key: 'ip', limit: 300, interval: '1m', store }, nodeReader)
 * createServer(async (req, res) => {
 *   const decision = await guard.check(req)
 *   if (decision?.allowed === false) {
 *     const { status, headers, type, body } = await guard.reject(req, decision)
 *     return res.writeHead(status, { ...headers, 'Content-Type': type }).end(body)
 *   }
 *   res.end('hello')
 * })
 */
export function createGuard<Req, Args extends readonly unknown[], Name extends string = string>(
  input: ThrottleInput<Req, Args, Name>,
  reader: RequestReader<Req>,
): Guard<Req, Args, Name> {
  const guard = new Guard(input, reader)
  if (!reader.bundled) guard.throttler.start()
  return guard
}
