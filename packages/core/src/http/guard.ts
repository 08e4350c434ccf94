import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { finished } from 'node:stream'
import { type Decision, summary } from '../decide/decision.ts'
import { show, WeirError } from '../report/errors.ts'
import { createThrottler, type Throttler } from '../throttler/throttler.ts'
import { Answers } from './answer/answer.ts'
import { HeaderWriter, type SetHeader } from './answer/headers.ts'
import type { Refusal } from './answer/refusal.ts'
import { type FaceOptions, splitOptions, type ThrottleInput } from './face-options.ts'
import { accessTest } from './request/access-list.ts'
import type { RequestReader } from './request/reader.ts'
import { isPromise, Rules } from './request/rules.ts'

/** The request passes uncounted. */
const PASS = Symbol('pass')

/** What a request on the deny list gets. */
const DENIED: Decision<never> = Object.freeze({
  allowed: false,
  reason: 'blocked',
  policy: undefined,
  key: '',
  limit: 0,
  remaining: 0,
  resetAfter: 0,
  retryAfter: 0,
  cost: 0,
  parts: [],
  dryRun: false,
})

/**
 * All that a face does except calling its framework. For each request a face
 *
 * 1. asks `check` (or `checkAsync` when `strict`); `undefined` means: let the request pass untouched,
 * 2. when the decision allows the request, sets the fields of `writeHeaders`, calls `watch`, and goes on,
 * 3. or else answers with what `refuse` returns, unless `handle` does.
 *
 * None of its methods throws: whatever goes wrong is reported as a `warning` event of the throttler, once per cause, and the
 * request passes.
 *
 * @typeParam Args what the framework calls a middleware with
 */
export class Guard<Req, Args extends readonly unknown[], Name extends string = string> {
  /** Tells a face's own options from those of its throttler, for faces that complete the options of one place by another's. */
  static readonly split: typeof splitOptions = splitOptions

  /** What decides: the one that was given, or made from the options. */
  readonly throttler: Throttler<Name, Req>
  /** Whether this guard made its throttler, and so the face has to close it. */
  readonly owned: boolean
  /** Whether refusals go to the framework's error handler, as a `ThrottledError`. */
  readonly throws: boolean
  readonly #options: FaceOptions<Req, Args, Name>
  readonly #reader: RequestReader<Req>
  readonly #which: (policy: string) => boolean
  #rules: Rules<Req>
  #headers: HeaderWriter
  #version: number
  readonly #gated: boolean
  readonly #settles: boolean
  readonly #allowed: ((request: Req) => boolean) | undefined
  readonly #denied: ((request: Req) => boolean) | undefined
  readonly #answers: Answers<Req, Name>
  readonly #reported = new Set<string>()

  /**
   * @param input a throttler, or options
   * @param reader how the framework's request is read
   * @param which tells by its name whether this guard decides by a policy of the throttler; default: all
   * @throws WeirError for options that can't be used, naming the option
   */
  constructor(input: ThrottleInput<Req, Args, Name>, reader: RequestReader<Req>, which: (policy: string) => boolean = () => true) {
    const split = splitOptions(input)
    const { face } = split
    const throttler = split.throttler ?? createThrottler(split.make)
    const ip = (request: Req) => reader.ip(request)
    this.throttler = throttler
    this.owned = split.throttler === undefined
    this.#settles = face.skipFailedRequests === true || face.skipSuccessfulRequests === true
    this.throws = face.onRefused === 'throw'
    this.#options = face
    this.#reader = reader
    this.#answers = new Answers(face, reader, (cause, what, error) => this.report(cause, what, error))
    this.#which = which
    this.#version = throttler.version
    this.#rules = this.#compile()
    this.#headers = new HeaderWriter(throttler.policies, face.headers)
    this.#allowed = face.allow === undefined ? undefined : accessTest(face.allow, 'allow', ip)
    this.#denied = face.deny === undefined ? undefined : accessTest(face.deny, 'deny', ip)
    this.#gated = [face.enabled, face.skip, face.allow, face.deny].some((option) => option !== undefined) || face.skipOptions === true
  }

  /** Whether some policy needs `checkAsync`. */
  get strict(): boolean {
    return this.throttler.strict
  }

  /**
   * Decides about a request.
   *
   * @param earlier what was decided about the request before, by this or another guard. A throttler counts a request once,
   * in however many places it stands.
   * @returns undefined when the request passes uncounted
   */
  check(request: Req, earlier?: Decision | null): Decision<Name> | undefined {
    try {
      const settled = this.#before(request, earlier)
      if (settled !== undefined) return settled === PASS ? undefined : settled
      const { keys, costs, applying, applied } = this.#rules
      return this.#after(request, this.throttler.decide(keys, costs, applying, applied))
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** As `check`, for throttlers with a `strict` policy: a promise, which never rejects, only when a request has to wait. */
  checkAsync(request: Req, earlier?: Decision | null): Decision<Name> | undefined | Promise<Decision<Name> | undefined> {
    try {
      const settled = this.#before(request, earlier)
      if (settled !== undefined) return settled === PASS ? undefined : settled
      const { keys, costs, applying, applied } = this.#rules
      const decision = this.throttler.decideAsync(keys, costs, applying, applied)
      if (!(decision instanceof Promise)) return this.#after(request, decision)
      return decision.then(
        (decided) => this.#after(request, decided),
        (error: unknown) => this.#pass(error),
      )
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Sets the fields that tell a client about its limits. */
  writeHeaders<Res>(decision: Decision<Name>, response: Res, set: SetHeader<Res>): void {
    try {
      this.#headers.write(decision, response, set)
    } catch (error) {
      // The response has begun, e.g. by an earlier middleware that streams.
      this.report('headers', 'The rate limit fields could not be set', error)
    }
  }

  /** The answer to a refused request. Its body suits the client, or is the `message` of the options. */
  refuse(request: Req, decision: Decision<Name>): Refusal<Name> {
    return this.#answers.make(request, decision, this.#headers)
  }

  /**
   * Lets the `handler` of the options answer.
   *
   * @returns false when there is none, or when it failed: then the face answers
   */
  handle(refusal: Refusal<Name>, args: Args): boolean {
    const { handler } = this.#options
    if (handler === undefined) return false
    try {
      const done: unknown = handler(...args, refusal)
      if (isPromise(done)) Promise.resolve(done).catch((error: unknown) => this.report('handler', 'The handler failed', error))
      return true
    } catch (error) {
      this.report('handler', 'The handler threw', error)
      return false
    }
  }

  /**
   * Waits for the end of the response where the options say that some requests are given back.
   *
   * @param args what the framework called the middleware with
   */
  watch(decision: Decision<Name>, response: ServerResponse | Http2ServerResponse, args: Args): void {
    if (!this.#settles) return
    finished(response, (error) => {
      // HTTP/2 has no error for a stream that the client has reset before its answer was complete.
      const complete = (error === undefined || error === null) && response.writableEnded
      this.#settle(decision, response.statusCode, complete, args)
    })
  }

  /** Reports a cause of trouble, the first time only. */
  report(cause: string, what: string, error: unknown): void {
    if (this.#reported.has(cause)) return
    this.#reported.add(cause)
    try {
      const why = error instanceof Error ? error.message : typeof error === 'string' ? error : show(error)
      const code = error instanceof WeirError ? error.code : 'WEIR_FACE_FAILED'
      this.throttler.warn(new WeirError(code, `${what}: ${why}`, { cause: error }), cause)
    } catch {
      // Nobody is left to tell; the request matters more.
    }
  }

  /** What is known of a request before its throttler is asked; undefined when it has to be. */
  #before(request: Req, earlier: Decision | null | undefined): Decision<Name> | typeof PASS | undefined {
    if (this.#gated) {
      const passes = this.#gate(request)
      if (passes !== undefined) return passes ? PASS : this.#after(request, DENIED)
    }
    if (earlier !== undefined && earlier !== null && this.#counted(earlier)) return PASS
    if (this.#version !== this.throttler.version) this.#update()
    return this.#rules.evaluate(request) ? undefined : PASS
  }

  /** Follows the throttler's `update`. */
  #update(): void {
    this.#version = this.throttler.version
    this.#rules = this.#compile()
    this.#headers = new HeaderWriter(this.throttler.policies, this.#options.headers)
  }

  #compile(): Rules<Req> {
    const { throttler } = this
    const only = throttler.policies.flatMap(({ name }, place) => (this.#which(name) ? [place] : []))
    const report = (error: WeirError, subject: string) => throttler.warn(error, subject)
    return new Rules(throttler.rules, this.#reader, { ...this.#options, report }, only)
  }

  /** True: the request passes uncounted; false: it is denied; undefined: it is decided about. */
  #gate(request: Req): boolean | undefined {
    const { enabled, skip, skipOptions } = this.#options
    if (enabled !== undefined && this.#ask('enabled', enabled) === false) return true
    if (skipOptions === true && this.#reader.method(request) === 'OPTIONS') return true
    if (skip !== undefined && this.#ask('skip', skip, request) === true) return true
    if (this.#allowed !== undefined && this.#ask('allow', this.#allowed, request) === true) return true
    if (this.#denied !== undefined && this.#ask('deny', this.#denied, request) === true) return false
    return undefined
  }

  #ask<Given extends readonly unknown[]>(option: string, question: (...given: Given) => unknown, ...given: Given): unknown {
    try {
      const answer = question(...given)
      if (!isPromise(answer)) return answer
      this.report(option, `Option "${option}"`, 'it returned a promise; it must answer at once')
    } catch (error) {
      this.report(option, `Option "${option}" threw`, error)
    }
    return undefined
  }

  #settle(decision: Decision<Name>, status: number, complete: boolean, args: Args): void {
    try {
      const { skipFailedRequests, skipSuccessfulRequests, requestWasSuccessful } = this.#options
      const success = complete && (requestWasSuccessful === undefined ? status < 400 : requestWasSuccessful(...args) === true)
      if (success ? skipSuccessfulRequests : skipFailedRequests) this.throttler.refund(decision)
    } catch (error) {
      this.report('settle', 'A request could not be given back', error)
    }
  }

  /** Whether a decision was made by the same throttler. */
  #counted(earlier: Decision): boolean {
    return earlier.policy !== undefined && (this.throttler.policies as readonly unknown[]).includes(earlier.policy)
  }

  #after(request: Req, decision: Decision<Name>): Decision<Name> {
    if (decision.allowed && !decision.dryRun) return decision
    const { onThrottled, dryRun } = this.#options
    if (onThrottled !== undefined) this.#ask('onThrottled', onThrottled, request, decision)
    return dryRun === true && !decision.allowed ? asDryRun(decision) : decision
  }

  #pass(error: unknown): undefined {
    this.report(error instanceof WeirError ? error.code : 'check', 'A request could not be decided about and passes', error)
    return undefined
  }
}

/** A refusal that is only reported. */
function asDryRun<Name extends string>(decision: Decision<Name>): Decision<Name> {
  return { ...(summary(decision) as Decision<Name>), allowed: true, dryRun: true, parts: decision.parts }
}

/**
 * Makes a guard, the part of a middleware that all frameworks share, and starts its throttler.
 *
 * @param input a throttler, or options
 * @param reader how the framework's request is read
 * @throws WeirError for options that can't be used, naming the option
 *
 * @example
 * const guard = createGuard({ key: 'ip', limit: 300, interval: '1m', store }, nodeReader)
 * createServer((req, res) => {
 *   const decision = guard.check(req)
 *   if (decision?.allowed === false) {
 *     const { status, headers, type, body } = guard.refuse(req, decision)
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
  guard.throttler.start()
  return guard
}
