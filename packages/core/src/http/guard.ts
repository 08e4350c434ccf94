import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { type Decision, summary } from '../decide/decision.ts'
import { WeirError } from '../report/errors.ts'
import { Once } from '../report/once.ts'
import { reasonOf } from '../report/show.ts'
import { askAll, isThenable, NoAnswer, type Patience, settle, tell } from '../report/user-function.ts'
import { createThrottler, type Throttler } from '../throttler/throttler.ts'
import { type AdapterOptions, callbackTimeout, splitOptions, type ThrottleInput } from './adapter-options.ts'
import { Answers } from './answer/answer.ts'
import { HeaderWriter, type SetHeader } from './answer/headers.ts'
import type { Refusal } from './answer/refusal.ts'
import { Gates } from './gates.ts'
import type { Reading } from './request/later.ts'
import type { RequestReader } from './request/reader.ts'
import { Rules } from './request/rules.ts'
import { Settlement } from './settlement.ts'

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
  delay: 0,
  cost: 0,
  parts: [],
  dryRun: false,
})

/**
 * What became of a refused request that the `handler` of the options was called for: `'answered'`, or it will be;
 * `'failed'`, and nothing has been sent: the adapter answers; or `'left'`: the handler has begun an answer, and the adapter
 * leaves the response alone.
 */
export type Handled = 'answered' | 'failed' | 'left'

/**
 * All that an adapter does except calling its framework. For each request an adapter
 *
 * 1. asks `check`; `undefined` means: let the request pass untouched,
 * 2. when the decision allows the request, sets the fields of `writeHeaders`, calls `watch`, and goes on,
 * 3. or else answers with what `refuse` returns, unless `handle` does.
 *
 * `check`, `refuse` and `handle` return a promise only when a request has to wait: for a function of the options, for the
 * store (coordination `'leases'` and `'central'`), or to keep a pace (`leakyBucket()`). None of the methods throws, and no promise is rejected: whatever goes wrong is reported as a `warning`
 * event of the throttler, once per cause, and the request passes.
 *
 * @typeParam Args what the framework calls a middleware with
 */
export class Guard<Req, Args extends readonly unknown[], Name extends string = string> {
  /** Tells an adapter's own options from those of its throttler, for adapters that complete the options of one place by another's. */
  static readonly split: typeof splitOptions = splitOptions

  /** What decides: the one that was given, or made from the options. */
  readonly throttler: Throttler<Name, Req>
  /** Whether this guard made its throttler, and so the adapter has to close it. */
  readonly owned: boolean
  /** Whether refusals go to the framework's error handler, as a `ThrottledError`. */
  readonly throws: boolean
  readonly #options: AdapterOptions<Req, Args, Name>
  readonly #reader: RequestReader<Req>
  readonly #which: (policy: string) => boolean
  #rules: Rules<Req>
  #headers: HeaderWriter
  #version: number
  /** Absent where no request is let past or denied by the options alone. */
  readonly #gates: Gates<Req> | undefined
  /** Absent where no request is refunded by its response. */
  readonly #settlement: Settlement<Args, Name> | undefined
  readonly #patience: Patience
  readonly #answers: Answers<Req, Name>
  /** Whether some policy lets requests in that are to keep a pace, so that they are held. */
  #holds: boolean
  readonly #reported = new Once()
  readonly #untold = (failure: NoAnswer): void => this.report('onThrottled', 'Option "onThrottled"', failure)

  /**
   * @param input a throttler, or options
   * @param reader how the framework's request is read
   * @param which tells by its name whether this guard decides by a policy of the throttler; default: all
   * @throws WeirError for options that can't be used, naming the option
   */
  constructor(input: ThrottleInput<Req, Args, Name>, reader: RequestReader<Req>, which: (policy: string) => boolean = () => true) {
    const split = splitOptions(input)
    const { own } = split
    const throttler = split.throttler ?? createThrottler(split.make)
    this.throttler = throttler
    this.#patience = { clock: throttler.clock, timeout: callbackTimeout(own) }
    this.owned = split.throttler === undefined
    const settles = own.skipFailedRequests === true || own.skipSuccessfulRequests === true
    this.#settlement = settles
      ? new Settlement(own, throttler, this.#patience, (cause, what, why) => this.report(cause, what, why))
      : undefined
    this.throws = own.onRefused === 'throw'
    this.#options = own
    this.#reader = reader
    this.#answers = new Answers(own, reader, this.#patience, (cause, what, why) => this.report(cause, what, why))
    this.#which = which
    this.#version = throttler.version
    this.#holds = this.#mayHold()
    this.#rules = this.#compile()
    this.#headers = new HeaderWriter(throttler.policies, own.headers)
    const gates = new Gates(own, reader, this.#patience, (cause, what, why) => this.report(cause, what, why))
    this.#gates = gates.none ? undefined : gates
  }

  /**
   * Decides about a request. A promise, which is never rejected, only when the request has to wait.
   *
   * @param earlier what was decided about the request before, by this or another guard. A throttler counts a request once,
   * in however many places it stands.
   * @param response what the request will be answered with, so that one whose client goes away while it is held gives its place back
   * @returns undefined when the request passes uncounted; null when its client went away while it was held, and there is nobody to answer
   */
  check(request: Req, earlier?: Decision | null): Decision<Name> | undefined | Promise<Decision<Name> | undefined>
  check(
    request: Req,
    earlier: Decision | null | undefined,
    response: ServerResponse | Http2ServerResponse,
  ): Decision<Name> | undefined | Promise<Decision<Name> | undefined | null>
  check(
    request: Req,
    earlier?: Decision | null,
    response?: ServerResponse | Http2ServerResponse,
  ): Decision<Name> | undefined | Promise<Decision<Name> | undefined | null> {
    const decision = this.#check(request, earlier)
    if (!this.#holds) return decision
    if (decision instanceof Promise) return decision.then((decided) => this.#hold(request, decided, response))
    return this.#hold(request, decision, response)
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
  refuse(request: Req, decision: Decision<Name>): Refusal<Name> | Promise<Refusal<Name>> {
    return this.#answers.make(request, decision, this.#headers)
  }

  /**
   * Lets the `handler` of the options answer, and waits until its promise resolves.
   *
   * @param response what it answers with; a handler that fails after it has begun its answer leaves it broken, so the
   * response is destroyed
   * @returns `'failed'` also when there is no handler
   */
  handle(refusal: Refusal<Name>, args: Args, response: ServerResponse | Http2ServerResponse): Handled | Promise<Handled> {
    const { handler } = this.#options
    if (handler === undefined) return 'failed'
    const answer = askAll(handler, ...args, refusal)
    if (answer instanceof NoAnswer) return this.#unhandled(answer, response)
    if (!isThenable(answer)) return 'answered'
    return settle(answer, this.#patience).then(({ value }) => (value instanceof NoAnswer ? this.#unhandled(value, response) : 'answered'))
  }

  /** Answers by `answer` where a handler, whose promise has resolved, has not done so after a further `callbackTimeout`. */
  expect(answered: () => boolean, answer: () => void): void {
    if (answered()) return
    const { clock, timeout } = this.#patience
    clock.setTimeout(() => {
      if (answered()) return
      this.report('handler', 'Option "handler"', 'it has finished, but sent no answer')
      answer()
    }, timeout)
  }

  /**
   * Waits for the end of the response where the options say that some requests are refunded.
   *
   * @param args what the framework called the middleware with
   */
  watch(decision: Decision<Name>, response: ServerResponse | Http2ServerResponse, args: Args): void {
    this.#settlement?.watch(decision, response, args)
  }

  /**
   * Reports a cause of trouble, the first time only.
   *
   * @param why an error, a text, or how a function failed to answer
   */
  report(cause: string, what: string, why: unknown): void {
    if (!this.#reported.first(cause)) return
    try {
      const code = isWeirError(why) ? why.code : 'WEIR_ADAPTER_FAILED'
      const none = why instanceof NoAnswer
      const message = none ? `${what} ${why.problem}` : `${what}: ${reasonOf(why)}`
      this.throttler.warn(new WeirError(code, message, { cause: none ? why.error : why }), cause)
    } catch {
      // Nobody is left to tell; the request matters more.
    }
  }

  #check(request: Req, earlier: Decision | null | undefined): Decision<Name> | undefined | Promise<Decision<Name> | undefined> {
    try {
      if (this.#gates !== undefined) {
        const passes = this.#gates.ask(request)
        if (passes instanceof Promise) return this.#decideAfter(passes, request, earlier)
        if (passes !== undefined) return this.#passed(request, passes)
      }
      return this.#decide(request, earlier)
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** Holds a request that is to keep a pace. */
  #hold(
    request: Req,
    decision: Decision<Name> | undefined,
    response: ServerResponse | Http2ServerResponse | undefined,
  ): Decision<Name> | undefined | Promise<Decision<Name> | undefined | null> {
    if (decision === undefined || !decision.allowed || decision.delay === 0) return decision
    // Loaded when a request is to be held: most applications hold none.
    const held = import('./hold-request.ts').then(({ holdRequest }) => holdRequest(this.throttler, decision, response))
    return held.then(
      (held) => (held === null || held.allowed ? held : this.#after(request, held)),
      (error: unknown) => this.#pass(error),
    )
  }

  /** Decides about a request that no gate has settled. */
  #decide(request: Req, earlier: Decision | null | undefined): Decision<Name> | undefined | Promise<Decision<Name> | undefined> {
    if (earlier !== undefined && earlier !== null && this.#counted(earlier)) return undefined
    if (this.#version !== this.throttler.version) this.#update()
    const applies = this.#rules.evaluate(request)
    if (applies === false) return undefined
    if (applies !== true) return this.#decideLater(request, applies)
    const { keys, costs, applying, applied } = this.#rules
    return this.#ask(request, keys, costs, applying, applied)
  }

  #ask(
    request: Req,
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    applying: readonly number[],
    applied: number,
  ): Decision<Name> | undefined | Promise<Decision<Name> | undefined> {
    const { throttler } = this
    const { names } = throttler
    const decision =
      names?.sharing === true
        ? names.decide(throttler, request as object, keys, costs, applying.slice(0, applied))
        : throttler.waits
          ? throttler.decideAsync(keys, costs, applying, applied)
          : throttler.decide(keys, costs, applying, applied)
    if (decision === undefined) return undefined
    if (!(decision instanceof Promise)) return this.#after(request, decision)
    return decision.then(
      (decided) => this.#after(request, decided),
      (error: unknown) => this.#pass(error),
    )
  }

  /** As `#decide`, once it is known what the request is counted by. */
  async #decideLater(request: Req, reading: Promise<Reading | undefined>): Promise<Decision<Name> | undefined> {
    const version = this.#version
    try {
      const read = await reading
      // The request was read by the old rules, whose places may differ.
      if (version !== this.throttler.version) return await this.#decide(request, undefined)
      if (read === undefined) return undefined
      return await this.#ask(request, read.keys, read.costs, read.applying, read.applying.length)
    } catch (error) {
      return this.#pass(error)
    }
  }

  /** As `#decide`, once the gates have answered. */
  async #decideAfter(
    gates: Promise<boolean | undefined>,
    request: Req,
    earlier: Decision | null | undefined,
  ): Promise<Decision<Name> | undefined> {
    try {
      const passes = await gates
      return await (passes === undefined ? this.#decide(request, earlier) : this.#passed(request, passes))
    } catch (error) {
      return this.#pass(error)
    }
  }

  #passed(request: Req, passes: boolean): Decision<Name> | undefined {
    return passes ? undefined : this.#after(request, DENIED)
  }

  /** Follows the throttler's `update`. */
  #update(): void {
    this.#version = this.throttler.version
    this.#holds = this.#mayHold()
    this.#rules = this.#compile()
    this.#headers = new HeaderWriter(this.throttler.policies, this.#options.headers)
  }

  #mayHold(): boolean {
    if (this.#options.dryRun === true) return false
    return this.throttler.policies.some(({ name, algorithm, dryRun }) => algorithm.delay !== undefined && !dryRun && this.#which(name))
  }

  #compile(): Rules<Req> {
    const { throttler } = this
    const only = throttler.policies.flatMap(({ name }, place) => (this.#which(name) ? [place] : []))
    const report = (error: WeirError, subject: string) => throttler.warn(error, subject)
    return new Rules(throttler.rules, this.#reader, { ...this.#options, report, patience: this.#patience }, only)
  }

  /** A handler has failed, or is late. */
  #unhandled(failure: NoAnswer, response: ServerResponse | Http2ServerResponse): Handled {
    const late = failure.error === undefined
    // One that has begun is not late: its client may be slow.
    if (!late || !response.headersSent) this.report('handler', 'Option "handler"', failure)
    // It may go on, and write to what has ended by then.
    response.on('error', () => {})
    if (!response.headersSent) return 'failed'
    // A handler that threw will not go on, so the client has to see that its answer is broken.
    if (!late && !response.writableEnded) response.destroy()
    return 'left'
  }

  /** Whether a decision was made by the same throttler. */
  #counted(earlier: Decision): boolean {
    return earlier.policy !== undefined && (this.throttler.policies as readonly unknown[]).includes(earlier.policy)
  }

  #after(request: Req, decision: Decision<Name>): Decision<Name> {
    if (decision.allowed && !decision.dryRun) return decision
    const { onThrottled, dryRun } = this.#options
    if (onThrottled !== undefined) tell(this.#untold, onThrottled, request, decision)
    return dryRun === true && !decision.allowed ? asDryRun(decision) : decision
  }

  #pass(error: unknown): undefined {
    this.report(isWeirError(error) ? error.code : 'check', 'A request could not be decided about and passes', error)
    return undefined
  }
}

/** Whatever was thrown: that of a proxy may throw when it is asked what it is. */
function isWeirError(error: unknown): error is WeirError {
  try {
    return error instanceof WeirError
  } catch {
    return false
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
 * createServer(async (req, res) => {
 *   const decision = await guard.check(req)
 *   if (decision?.allowed === false) {
 *     const { status, headers, type, body } = await guard.refuse(req, decision)
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
