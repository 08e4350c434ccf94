import { POLICY_OPTIONS } from '../decide/check-policy.ts'
import type { Decision } from '../decide/decision.ts'
import { expandPlans, type PlannedName, type PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions, PolicyOptions, SlotPolicyOptions } from '../decide/policy.ts'
import { meantBy } from '../options/did-you-mean.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { type Awaitable, CALLBACK_TIMEOUT, isThenable } from '../report/user-function.ts'
import { ADAPTER } from '../throttler/adapter-side.ts'
import { THROTTLER_OPTIONS, type ThrottlerOptions } from '../throttler/options.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { checkHeaders, type HeaderStyle } from './answer/headers.ts'
import type { Rejection } from './answer/rejection.ts'
import { addressKeys } from './request/address.ts'
import type { AccessList, AddressList } from './request/address-list.ts'

/**
 * What an adapter can be told beside its policies. `Args` is what the framework calls a middleware with, e.g. `[req, res]`.
 *
 * Each function may answer at once or return a promise; then the request waits for it. None can break a request: one that
 * throws, is rejected, answers nonsense, or takes longer than `callbackTimeout` is reported once as a `warning` event, and the
 * request goes on as each option says.
 */
export interface AdapterOptions<Req, Args extends readonly unknown[], Name extends string = string> {
  /** Requests that are neither counted nor rejected: those for which it answers `true`. Without an answer: none. */
  readonly skip?: (request: Req) => Awaitable<boolean>
  /**
   * Lets preflight requests of CORS pass uncounted: `OPTIONS` with `Origin` and `Access-Control-Request-Method`. Other `OPTIONS` requests
   * count.
   *
   * @default false
   */
  readonly skipPreflight?: boolean
  /**
   * Switches the limit on and off: while it is `false`, nothing is counted or rejected. A function is called for each request.
   *
   * @default true
   */
  readonly enabled?: boolean | (() => Awaitable<boolean>)
  /** Requests that always pass, uncounted. A function must answer `true`; without an answer: none. */
  readonly allow?: AccessList<Req>
  /** Requests that are always rejected, with status 403. `allow` comes first. A function as with `allow`. */
  readonly deny?: AccessList<Req>
  /** Which fields tell clients about their limits: a style, a draft's and a legacy one together, or none. Default `'draft-11'`. */
  readonly headers?: HeaderStyle | readonly HeaderStyle[] | false
  /** Whether a rejection has `Retry-After`, whatever `headers` says. Default true. */
  readonly sendRetryAfter?: boolean
  /** Status of a rejection, 400 to 599. Default 429. */
  readonly statusCode?: number
  /**
   * The body of a rejection: a string (plain text), or anything else (JSON), or a function that returns one. One that
   * fails leaves the standard body.
   */
  readonly message?: string | object | ((request: Req, decision: Decision<Name>) => Awaitable<string | object>)
  /**
   * Answers rejected requests itself; status and headers are set already. One that throws or is rejected, or whose promise is
   * pending after `callbackTimeout`, leaves the standard answer, unless it has begun its own. One that returns, or whose
   * promise resolves, has answered, or will.
   */
  readonly handler?: (...args: [...Args, rejection: Rejection<Name>]) => unknown
  /**
   * Passes rejections to the framework's error handler as a `ThrottledError`, instead of answering. Not allowed with `message` or `handler`.
   *
   * @default false
   */
  readonly throwOnReject?: boolean
  /** Receives each rejected request, even in a dry run. Nothing waits for it. The event `rejections` reports sums instead, at most one per second. */
  readonly onRejected?: (request: Req, decision: Decision<Name>) => void
  /** Decide and report, but never reject. Default false. */
  readonly dryRun?: boolean
  /** Refund what a request took when its answer is 400 or above, or was cut off. Default false. */
  readonly skipFailedRequests?: boolean
  /** Refund what a request took when it was answered below 400. Default false. */
  readonly skipSuccessfulRequests?: boolean
  /**
   * Decides after the response what counts as success: `true` or `false`. Without an answer nothing is refunded. Default:
   * status below 400. A cut-off response never succeeds.
   */
  readonly requestWasSuccessful?: (...args: Args) => Awaitable<boolean>
  /** Bits of an IPv6 address that are kept in keys, 1 to 128. Default 64. */
  readonly ipv6Subnet?: number
  /** Tell paths apart by case where a key is made from a path. Default false, as Express and Koa route. */
  readonly caseSensitive?: boolean
  /** How long a request waits for one of the functions above, or of its policies; from 1 ms to 60 s. Default 1 s. */
  readonly callbackTimeout?: Duration
}

/** What makes a throttler, without its policies. */
export type SharedThrottlerOptions<Req, Name extends string> = Omit<ThrottlerOptions<Req, Name>, 'policies'>

/**
 * What an adapter takes: a throttler; or an object of adapter options with a `throttler`, with `policies`, or with the options of one
 * policy in itself.
 */
export type ThrottleInput<Req, Args extends readonly unknown[], Name extends string = string, Plan extends string = string> =
  | Throttler<Name, Req>
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & { readonly throttler: Throttler<Name, Req> })
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> &
      SharedThrottlerOptions<Req, Name> & {
        readonly policies: readonly (AnyPolicyOptions<Req, Name> | PlannedPolicyOptions<Req, Name, Plan>)[]
      })
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & PlannedPolicyOptions<Req, Name, Plan> & SharedThrottlerOptions<Req, Name>)
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & PolicyOptions<Req, Name> & SharedThrottlerOptions<Req, Name>)
  | (AdapterOptions<Req, Args, PlannedName<Name, Plan>> & SlotPolicyOptions<Req, Name> & SharedThrottlerOptions<Req, Name>)

/** Longest `callbackTimeout`, in milliseconds. */
const LONGEST_TIMEOUT = 60_000

/** What an option may be: of one of these types, an access list, or what is checked by itself. */
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
  ipv6Subnet: 'other',
  caseSensitive: 'boolean',
  callbackTimeout: 'other',
} satisfies Record<keyof AdapterOptions<never, []>, Kind>

const LIST = 'addresses("10.0.0.0/8", "2001:db8::1"), with addresses imported beside throttle, or a function of the request'

/** An adapter's options apart from those of its throttler. */
export interface SplitOptions<Req, Args extends readonly unknown[], Name extends string> {
  readonly own: AdapterOptions<Req, Args, Name>
  /** The throttler that was given; otherwise `make` says what to make it from. */
  readonly throttler: Throttler<Name, Req> | undefined
  /** The policies as they are written. */
  readonly given: readonly object[]
  /** Policies with plans are replaced by one for each plan. */
  readonly make: SharedThrottlerOptions<Req, Name> & { readonly policies: readonly PolicyOptions<Req, Name>[] }
}

/**
 * Tells what belongs to an adapter from what belongs to its throttler. The throttler's part is checked by `createThrottler`.
 *
 * @throws WeirError `WEIR_UNKNOWN_OPTION`, `WEIR_MISSING_OPTION` or `WEIR_INVALID_OPTION` for the adapter's own
 */
export function splitOptions<Req, Args extends readonly unknown[], Name extends string>(
  input: ThrottleInput<Req, Args, Name>,
): SplitOptions<Req, Args, Name> {
  if (typeof input !== 'object' || input === null || Array.isArray(input) || 'then' in input) {
    const allowed = 'a throttler, or options such as { limit: 100, interval: "1m" }'
    throw invalidOption('throttle', input, 'then' in Object(input) ? `${allowed}; await the promise first` : allowed)
  }
  if (isThrottler<Name, Req>(input)) return { own: {}, throttler: input, given: [], make: { policies: [] } }
  if (isRequest(input)) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      'throttle was given a request in place of options, because it was not called itself. Write app.use(throttle({ limit: 100, interval: "1m" })) instead of app.use(throttle).',
    )
  }
  const own: Record<string, unknown> = {}
  const shared: Record<string, unknown> = {}
  const policy: Record<string, unknown> = {}
  for (const [option, value] of Object.entries(input)) {
    if (option === 'throttler' || value === undefined) continue
    if (Object.hasOwn(OWN, option)) own[option] = value
    else if (THROTTLER_OPTIONS.includes(option)) shared[option] = value
    else policy[option] = value
  }
  checkOwn(own)
  const foreign = Object.keys(policy)
  const ofPolicy = [...POLICY_OPTIONS, 'plans', 'plan']
  if ('throttler' in input && input.throttler !== undefined) {
    if (!isThrottler<Name, Req>(input.throttler)) throw invalidOption('throttler', input.throttler, 'what createThrottler returns')
    const extra = [...foreign, ...Object.keys(shared)][0]
    if (extra !== undefined) throw unknown(extra, 'Beside "throttler" only options of the adapter are allowed: give it to createThrottler.')
    return { own, throttler: input.throttler, given: [], make: { policies: [] } }
  }
  for (const option of foreign) {
    if (ofPolicy.includes(option)) continue
    const meant = meantBy(option, [...Object.keys(OWN), ...THROTTLER_OPTIONS, ...ofPolicy])
    throw unknown(option, meant ?? `A policy has: ${ofPolicy.join(', ')}; and an adapter: ${Object.keys(OWN).join(', ')}.`)
  }
  if ('policies' in shared && foreign[0] !== undefined) throw unknown(foreign[0], 'Beside "policies" it must stand in one of them.')
  const given = ('policies' in shared ? shared['policies'] : [policy]) as readonly PolicyOptions<Req, Name>[]
  const policies = expandPlans(given)
  // What else is in here is checked when the throttler is made, not by the compiler.
  return { own, throttler: undefined, given, make: { ...shared, policies } as unknown as SplitOptions<Req, Args, Name>['make'] }
}

/** The ESM and the CommonJS build each have a class of their own. */
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
    if (kind === 'list' && type !== 'function' && !made) throw invalidOption(option, value, LIST)
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
      'Option "requestWasSuccessful" does nothing without "skipFailedRequests: true" or "skipSuccessfulRequests: true".',
    )
  }
  // As the guard reads them: what it can't use must be found before it has made a throttler.
  callbackTimeout(own)
  if (own['headers'] !== undefined) checkHeaders(own['headers'])
  addressKeys(own['ipv6Subnet'] as number | undefined)
  const answer = ['handler', 'message'].find((option) => own[option] !== undefined)
  if (throwOnReject === true && answer !== undefined) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Options "${answer}" and "throwOnReject: true" are both given; the framework's error handler writes the answer.`,
    )
  }
  if (own['handler'] !== undefined && own['message'] !== undefined) {
    throw new WeirError('WEIR_INVALID_OPTION', 'Options "handler" and "message" are both given; a handler writes the body itself.')
  }
}

/**
 * How long a function may take, in milliseconds.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`
 */
export function callbackTimeout({ callbackTimeout: given }: Pick<AdapterOptions<never, []>, 'callbackTimeout'>): number {
  if (given === undefined) return CALLBACK_TIMEOUT
  const timeout = parseDuration(given, 'callbackTimeout', 1)
  if (timeout > LONGEST_TIMEOUT) throw invalidOption('callbackTimeout', given, 'from 1 ms to 60 s')
  return timeout
}
