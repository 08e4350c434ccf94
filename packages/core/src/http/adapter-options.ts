import { reservingOf } from '../budget/options.ts'
import { POLICY_OPTIONS } from '../decide/check-policy.ts'
import type { Costs } from '../decide/costs.ts'
import type { Decision } from '../decide/decision.ts'
import { expandPlans, type PlannedName, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { PolicyOptions, RequestPolicyOptions, RequestSlotPolicyOptions } from '../decide/policy.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { oneOf } from '../options/one-of.ts'
import { meantBy } from '../report/did-you-mean.ts'
import { importOf, invalidOption, show, WeirError } from '../report/errors.ts'
import { type Awaitable, CALLBACK_TIMEOUT, isThenable } from '../report/user-function.ts'
import { ADAPTER } from '../throttler/adapter-side.ts'
import { THROTTLER_OPTIONS, type ThrottlerOptions } from '../throttler/options.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { checkHeaders, type HeaderStyle } from './answer/headers.ts'
import type { Rejection } from './answer/rejection.ts'
import { addressKeys } from './request/address.ts'
import type { AccessList, AddressList } from './request/address-list.ts'

/**
 * Options of an adapter beside its policies. `Args` are the arguments of a middleware of the framework, e.g. `[req, res]`.
 *
 * Each function may return a promise: then the request waits for it. A function fails if it throws, rejects, returns an invalid value or
 * takes longer than `callbackTimeout`. The failure is reported once as a `warning` event, and the request continues as the option
 * describes.
 */
export interface AdapterOptions<Req, Args extends readonly unknown[], Name extends string = string> {
  /**
   * Skips requests for which the function returns `true`: they are neither counted nor rejected.
   *
   * They get no rate-limit headers. If the function fails, the request is counted.
   *
   * @default none: all requests are counted
   */
  readonly skip?: (request: Req) => Awaitable<boolean>
  /**
   * Skips CORS preflights: `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
   *
   * Other `OPTIONS` requests count.
   *
   * @default false
   */
  readonly skipPreflight?: boolean
  /**
   * Switches the limits on and off.
   *
   * While it is `false`, nothing is counted or rejected. A function is called for each request, and may return a promise. If it fails, the
   * limits apply.
   *
   * @default true
   */
  readonly enabled?: boolean | (() => Awaitable<boolean>)
  /**
   * Allows these clients without counting them: `addresses('10.0.0.0/8', '2001:db8::1')`, or those for which a function returns `true`.
   *
   * If the function fails, the request is counted as any other.
   *
   * @default none: all clients are counted
   * @example
   * allow: addresses('10.0.0.0/8', '2001:db8::1')
   */
  readonly allow?: AccessList<Req>
  /**
   * Rejects these clients with status 403. `allow` takes precedence.
   *
   * A list of addresses and networks, or a function of the request that returns `true`. If the function fails, the request is counted as
   * any other.
   *
   * @default none: no client is denied
   */
  readonly deny?: AccessList<Req>
  /**
   * Chooses the headers that show clients their limits: a style, a list of a draft and a legacy style, or none.
   *
   * - `'draft-11'`: `RateLimit-Policy: "api";q=100;w=60` and `RateLimit: "api";r=73;t=21`, with an item for each policy.
   * - `'draft-7'`: `RateLimit-Policy`, and `RateLimit: limit=100, remaining=73, reset=21`.
   * - `'draft-6'`: `RateLimit-Policy`, `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds from now).
   * - `'legacy'`: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds from now).
   * - `'legacy-unix'`: the same, with the reset as a Unix time in seconds.
   * - `false`: none of them.
   *
   * Throws `WEIR_INVALID_OPTION` for two drafts and for two legacy styles. Draft 11 lapsed in November 2026, without a successor so far.
   *
   * @default 'draft-11'
   * @example
   * headers: ['draft-11', 'legacy']
   * @see `@weir/core/docs/reference/http.md`
   */
  readonly headers?: HeaderStyle | readonly HeaderStyle[] | false
  /**
   * Sends `Retry-After` with a rejection, independently of `headers`.
   *
   * Requests that can never fit, or that `concurrency()` rejects, get none.
   *
   * @default true
   */
  readonly sendRetryAfter?: boolean
  /**
   * Sets the status of a rejection: 400 to 599.
   *
   * @default 429
   */
  readonly statusCode?: number
  /**
   * Replaces the body of a rejection: plain text for a string, otherwise JSON. Not with `handler` or `throwOnReject`.
   *
   * A function of the request and the decision returns one of these, or a promise. If it fails, the standard body is sent. Any other
   * combination throws `WEIR_INVALID_OPTION`.
   *
   * @default problem details (RFC 9457), a page or plain text, as the client accepts
   * @see `@weir/core/docs/reference/http.md`
   */
  readonly message?: string | object | ((request: Req, decision: Decision<Name>) => Awaitable<string | object>)
  /**
   * Answers rejected requests. It gets the middleware's arguments (Express `req, res`; Fastify `request, reply`; Koa `ctx`; NestJS the
   * execution context; and to return the response, Hono `c` and `@weir/web` `request, response`), then the rejection. Status and headers
   * are already set. Not with `message` or
   * `throwOnReject`.
   *
   * If it throws or rejects, or is pending after `callbackTimeout`, the standard response is sent, unless the handler has begun its own.
   *
   * @default none: the adapter answers
   */
  readonly handler?: (...args: [...Args, rejection: Rejection<Name>]) => unknown
  /**
   * Passes a `ThrottledError` to the framework's error handler. Not with `message` or `handler`.
   *
   * The error has `statusCode`, `headers` and `decision`.
   *
   * @default false
   */
  readonly throwOnReject?: boolean
  /**
   * Receives each rejected request, even in a dry run. Nothing waits for it.
   *
   * Use it for a log. The event `rejections` reports sums instead, at most one per second.
   *
   * @default none
   */
  readonly onRejected?: (request: Req, decision: Decision<Name>) => void
  /**
   * Decides, counts and reports for all policies, but never rejects.
   *
   * @default false
   */
  readonly dryRun?: boolean
  /**
   * Refunds a request if its response has status 400 or above, or was cut off.
   *
   * @default false
   */
  readonly skipFailedRequests?: boolean
  /**
   * Refunds a request if its response has a status below 400.
   *
   * @default false
   */
  readonly skipSuccessfulRequests?: boolean
  /**
   * Decides success for these two. A response that was cut off is never successful.
   *
   * `skipFailedRequests` and `skipSuccessfulRequests` use it after the response. It returns `true` or `false`, or a promise. If it fails,
   * nothing is refunded. Throws `WEIR_MISSING_OPTION` if neither is `true`.
   *
   * @default status below 400
   */
  readonly requestWasSuccessful?: (...args: Args) => Awaitable<boolean>
  /**
   * Reserves units for each request before its handler runs, by policy name: `{ requests: 1, tokens: 2000 }`. When the response has ended,
   * `settle` counts the real use instead.
   *
   * Costs are rounded up. This adapter's other policies don't count the request. The handler gets a `Receipt` as its decision, and can
   * report its use while it streams: `req.throttle?.used?.({ tokens: 120 })`. If several adapters decide a request, handlers get the
   * decision of the last one. If the function fails or names an unknown policy, each policy's own `cost` applies. Throws
   * `WEIR_INVALID_OPTION` beside `skipFailedRequests` or `skipSuccessfulRequests`, and if the store can't keep open reservations.
   *
   * @default none: each policy counts its own `cost`
   * @example
   * estimate: (req) => ({ requests: 1, tokens: Math.min(64_000, Math.max(1, Number(req.body.max_tokens) || 64_000)) })
   * @see `@weir/core/docs/guides/budgets.md`
   */
  readonly estimate?: (request: Req) => Awaitable<Costs<NoInfer<Name>>>
  /**
   * Returns the units that a request of `estimate` really used, by policy name, after its response and handler have ended, however they
   * ended. The function gets the arguments of the middleware, as `handler`. Units above the reserved ones are charged, unused ones return.
   *
   * Policies without a number count the last number of `used`, or else the reserved units. The same applies to all policies if the function
   * fails or returns `undefined`. A client gets nothing back by disconnecting. Throws `WEIR_MISSING_OPTION` without `estimate`.
   *
   * @default none: the last numbers of `used` count, or else the reserved units
   * @example
   * settle: (req, res) => res.locals.usage && { tokens: res.locals.usage.total }
   * @see `@weir/core/docs/guides/budgets.md`
   */
  readonly settle?: (...args: Args) => Awaitable<Costs<NoInfer<Name>> | undefined>
  /**
   * Sets after how long a reservation of `estimate` settles itself: 10 ms to 24 days. Choose it longer than your longest response.
   *
   * Throws `WEIR_UNKNOWN_OPTION` without `estimate`, because other libraries give the interval this name.
   *
   * @default '5m'
   * @see `@weir/core/docs/guides/budgets.md`
   */
  readonly ttl?: Duration
  /**
   * Sets how many bits of an IPv6 address a key keeps: 1 to 128.
   *
   * A client can use any address of its network, so 128 lets it choose a new key for each request.
   *
   * @default 64
   * @see `@weir/core/docs/guides/keys.md`
   */
  readonly ipv6Subnet?: number
  /**
   * Distinguishes upper and lower case if a key is made from a path. `match` never does.
   *
   * @default false
   */
  readonly caseSensitive?: boolean
  /**
   * Limits how long a request waits for one of your functions: 1 ms to 60 s. Then its fallback applies.
   *
   * It applies to functions of these options and of a policy.
   *
   * @default '1s'
   * @see `@weir/core/docs/reference/options.md#functions`
   */
  readonly callbackTimeout?: Duration
  /**
   * Sets what the first requests do after the process has stood still for a second or longer, as functions do on Lambda or Vercel. Its
   * counts are old then.
   *
   * - `'sync'`: they wait until their keys have been read from the store, for at most 50 ms.
   * - `'continue'`: they are decided immediately, by the old counts.
   *
   * It matters for coordination `'background'` and `'periodic'`. Others read from the store anyway, or have no store.
   *
   * @default 'continue', and 'sync' for `@weir/web` outside of Cloudflare Workers
   * @see `@weir/core/docs/guides/where-it-runs.md`
   */
  readonly afterFreeze?: AfterFreeze
}

/** The values of `afterFreeze`. */
export type AfterFreeze = 'sync' | 'continue'

/** Options of a throttler, without its policies. */
export type SharedThrottlerOptions<Req, Name extends string> = Omit<ThrottlerOptions<Req, Name>, 'policies'>

/** Input of an adapter: a throttler, or adapter options with a `throttler`, with `policies`, or with the options of one policy. */
export type ThrottleInput<Req, Args extends readonly unknown[], Name extends string = string, Plan extends string = string> =
  | Throttler<Name, Req>
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & {
      /**
       * Uses this throttler, for example in several adapters. Allows no options of a throttler or policy beside it.
       *
       * Make it with `createThrottler`. Throws `WEIR_UNKNOWN_OPTION` with other options.
       *
       * @default none: the adapter makes one
       */
      readonly throttler: Throttler<Name, Req>
    })
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> &
      SharedThrottlerOptions<Req, Name> & {
        /** Lists the rules, at least one. A request counts only if all policies that apply allow it. */
        readonly policies: readonly (
          | RequestPolicyOptions<Req, Name>
          | RequestSlotPolicyOptions<Req, Name>
          | PlannedPolicyOptions<Req, Name, Plan>
        )[]
      })
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & PlannedPolicyOptions<Req, Name, Plan> & SharedThrottlerOptions<Req, Name>)
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & RequestPolicyOptions<Req, Name> & SharedThrottlerOptions<Req, Name>)
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & RequestSlotPolicyOptions<Req, Name> & SharedThrottlerOptions<Req, Name>)

/** Longest `callbackTimeout`, in milliseconds. */
const LONGEST_TIMEOUT = 60_000

/** The type of an option: one of these types, an access list, or a value that has its own check. */
type Kind = 'function' | 'boolean' | 'switch' | 'list' | 'other'

// Written as a record so that the compiler finds a missing name.
const OWN: Readonly<Record<string, Kind>> = {
  skip: 'function',
  skipPreflight: 'boolean',
  enabled: 'switch',
  allow: 'list',
  deny: 'list',
  headers: 'other',
  sendRetryAfter: 'boolean',
  statusCode: 'other',
  message: 'other',
  handler: 'function',
  throwOnReject: 'boolean',
  onRejected: 'function',
  dryRun: 'boolean',
  skipFailedRequests: 'boolean',
  skipSuccessfulRequests: 'boolean',
  requestWasSuccessful: 'function',
  estimate: 'function',
  settle: 'function',
  ttl: 'other',
  ipv6Subnet: 'other',
  caseSensitive: 'boolean',
  callbackTimeout: 'other',
  afterFreeze: 'other',
} satisfies Record<keyof AdapterOptions<never, []>, Kind>

const LIST = 'addresses("10.0.0.0/8", "2001:db8::1"), or a function of the request'

/** An adapter's options apart from those of its throttler. */
export interface SplitOptions<Req, Args extends readonly unknown[], Name extends string> {
  readonly own: AdapterOptions<Req, Args, Name>
  /** The throttler in the options. If there is none, it is made from `make`. */
  readonly throttler: Throttler<Name, Req> | undefined
  /** The policies as written in the options. */
  readonly given: readonly object[]
  /** The throttler's options, with each policy with plans replaced by one policy for each plan. */
  readonly make: SharedThrottlerOptions<Req, Name> & { readonly policies: readonly PolicyOptions<Req, Name>[] }
}

/**
 * Separates the adapter's options from its throttler's. `createThrottler` checks the throttler's part.
 *
 * @param more names of further options of the adapter
 * @throws WeirError `WEIR_UNKNOWN_OPTION`, `WEIR_MISSING_OPTION` or `WEIR_INVALID_OPTION` for the adapter's own
 */
export function splitOptions<Req, Args extends readonly unknown[], Name extends string>(
  input: ThrottleInput<Req, Args, Name>,
  more: readonly string[] = [],
): SplitOptions<Req, Args, Name> {
  if (typeof input !== 'object' || input === null || Array.isArray(input) || 'then' in input) {
    const allowed = 'a throttler, or options such as { key: "ip", limit: 100, interval: "1m" }'
    throw invalidOption('throttle', input, allowed, 'then' in Object(input) ? 'It is a promise: await it.' : '')
  }
  if (isThrottler<Name, Req>(input)) return { own: {}, throttler: input, given: [], make: { policies: [] } }
  if (isRequest(input)) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      'throttle() got a request instead of options, because it was passed without being called. Write app.use(throttle({ key: "ip", limit: 100, interval: "1m" })) instead of app.use(throttle).',
    )
  }
  const own: Record<string, unknown> = {}
  const shared: Record<string, unknown> = {}
  const policy: Record<string, unknown> = {}
  for (const [option, value] of Object.entries(input)) {
    if (option === 'throttler' || value === undefined) continue
    if (Object.hasOwn(OWN, option) && (option !== 'ttl' || input.estimate !== undefined)) own[option] = value
    else if (THROTTLER_OPTIONS.includes(option)) shared[option] = value
    else policy[option] = value
  }
  checkOwn(own)
  const foreign = Object.keys(policy)
  const ofPolicy = [...POLICY_OPTIONS, 'plans', 'plan']
  if ('throttler' in input && input.throttler !== undefined) {
    if (!isThrottler<Name, Req>(input.throttler))
      throw invalidOption('throttler', input.throttler, 'the throttler that createThrottler() returns')
    const extra = [...foreign, ...Object.keys(shared)][0]
    if (extra !== undefined)
      throw unknown(extra, 'With "throttler" only options of the adapter are allowed. Pass it to createThrottler() instead.')
    return { own, throttler: input.throttler, given: [], make: { policies: [] } }
  }
  for (const option of foreign) {
    if (ofPolicy.includes(option)) continue
    // Other libraries give the interval this name.
    const ofAdapter = [...more, ...Object.keys(OWN)].filter((name) => name !== 'ttl' || option !== name)
    const meant = meantBy(option, [...ofAdapter, ...THROTTLER_OPTIONS, ...ofPolicy])
    throw unknown(option, meant ?? `A policy has: ${ofPolicy.join(', ')}. An adapter has: ${ofAdapter.join(', ')}.`)
  }
  if ('policies' in shared && foreign[0] !== undefined)
    throw unknown(foreign[0], 'It is an option of a policy: move it into one of "policies".')
  const given = ('policies' in shared ? shared['policies'] : [policy]) as readonly PolicyOptions<Req, Name>[]
  const policies = expandPlans(given)
  // The remaining options are checked when the throttler is made, not by the compiler.
  return { own, throttler: undefined, given, make: { ...shared, policies } as unknown as SplitOptions<Req, Args, Name>['make'] }
}

/** Checks a member, because the ESM and the CommonJS build each have their own class. */
export function isThrottler<Name extends string, Req>(value: unknown): value is Throttler<Name, Req> {
  return typeof value === 'object' && value !== null && ADAPTER in value
}

/** A request of Node.js, Express or Fastify, or a context of Koa or Hono. */
function isRequest(value: object): boolean {
  return 'req' in value || ('url' in value && 'headers' in value)
}

function unknown(option: string, hint: string): WeirError {
  return new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option ${show(option)}. ${hint}`)
}

function checkOwn(own: Record<string, unknown>): void {
  for (const [option, value] of Object.entries(own)) {
    const kind = OWN[option]
    const type = typeof value
    if (kind === 'function' && type !== 'function') throw invalidOption(option, value, 'a function')
    if (kind === 'switch' && type !== 'boolean' && type !== 'function') throw invalidOption(option, value, 'true, false, or a function')
    if (kind === 'boolean' && type !== 'boolean') throw invalidOption(option, value, 'true or false')
    const made = typeof (value as Partial<AddressList> | null)?.includes === 'function' && type === 'object' && !Array.isArray(value)
    if (kind === 'list' && type !== 'function' && !made) throw invalidOption(option, value, LIST, importOf('addresses'))
    if (option === 'message' && (!['string', 'object', 'function'].includes(type) || value === null || isThenable(value)))
      throw invalidOption(option, value, 'a string, an object, or a function that returns one')
  }
  const { statusCode, throwOnReject } = own
  if (statusCode !== undefined && !(Number.isInteger(statusCode) && Number(statusCode) >= 400 && Number(statusCode) <= 599)) {
    throw invalidOption('statusCode', statusCode, 'a whole number from 400 to 599')
  }
  if (own['requestWasSuccessful'] !== undefined && own['skipFailedRequests'] !== true && own['skipSuccessfulRequests'] !== true) {
    throw new WeirError(
      'WEIR_MISSING_OPTION',
      'Option "requestWasSuccessful" has no effect alone. Add "skipFailedRequests: true" or "skipSuccessfulRequests: true".',
    )
  }
  if (own['estimate'] === undefined) {
    const next = 'Add the units to reserve, such as estimate: (req) => ({ tokens: 2000 }).'
    if (own['settle'] !== undefined) throw new WeirError('WEIR_MISSING_OPTION', `Option "settle" has no effect without "estimate". ${next}`)
  } else {
    const other = ['skipFailedRequests', 'skipSuccessfulRequests'].find((option) => own[option] === true)
    const why = 'return 0 units from "settle" for requests that must not count'
    if (other !== undefined) throw new WeirError('WEIR_INVALID_OPTION', `Use either "estimate" or "${other}", not both: ${why}.`)
  }
  // Checked as the guard reads them, because an error must occur before the guard makes a throttler.
  callbackTimeout(own)
  afterFreezeOf(own, undefined)
  reservingOf(own)
  if (own['headers'] !== undefined) checkHeaders(own['headers'])
  addressKeys(own['ipv6Subnet'] as number | undefined)
  const answer = ['handler', 'message'].find((option) => own[option] !== undefined)
  if (throwOnReject === true && answer !== undefined) {
    const why = "with the latter the framework's error handler writes the response"
    throw new WeirError('WEIR_INVALID_OPTION', `Use either "${answer}" or "throwOnReject: true", not both: ${why}.`)
  }
  if (own['handler'] !== undefined && own['message'] !== undefined) {
    throw new WeirError('WEIR_INVALID_OPTION', 'Use either "handler" or "message", not both: a handler writes the body itself.')
  }
}

/**
 * Whether requests wait for a sync after the process has stood still.
 *
 * @param usual the adapter's default
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function afterFreezeOf(
  { afterFreeze }: Pick<AdapterOptions<never, []>, 'afterFreeze'>,
  usual: AfterFreeze = 'continue',
): AfterFreeze {
  return oneOf('afterFreeze', afterFreeze === undefined ? usual : afterFreeze, ['sync', 'continue'])
}

/**
 * The longest time for a function, in milliseconds.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function callbackTimeout({ callbackTimeout: given }: Pick<AdapterOptions<never, []>, 'callbackTimeout'>): number {
  if (given === undefined) return CALLBACK_TIMEOUT
  return parseDuration(given, 'callbackTimeout', 1, LONGEST_TIMEOUT)
}
