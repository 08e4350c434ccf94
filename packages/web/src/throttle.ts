import { type Decision, type PlannedName, type Throttler, WeirError } from '@weir/core'
import {
  createGuard,
  type Guard,
  type HandlerDecision,
  invalidOption,
  type Rejection,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/adapter'
import { foundAddress, lastForwarded, withoutAddress } from './address.ts'
import { checked, Exchange, type Framework, rejected, throttled, withFields, withoutClient } from './exchange.ts'
import { addressBy, type Platform, platformOf } from './platform.ts'
import { webReader } from './reader.ts'

/**
 * The arguments of functions in options: the request, and its response. `handler` gets a response without a body that has the status and
 * headers of the rejection, e.g. for `Response.json({ error: 'slow down' }, response)`.
 */
export type WebArgs = readonly [request: Request, response: Response]

/** Returns the address of a request's client, or undefined if it is unknown. `rest` are the further arguments of the handler. */
export type AddressOf = (request: Request, ...rest: never[]) => string | undefined

/** Options of `throttle`. */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<Request, WebArgs, Name, Plan> & {
  /**
   * Finds the client's address, for `key: 'ip'` and address lists: `forwardedAddress(1)` behind one proxy, or a function of the handler's
   * arguments for platforms that report it in another way.
   *
   * @default as Bun, Deno, Cloudflare Workers, Vercel, SvelteKit and `@hono/node-server` report it
   */
  readonly address?: AddressOf
}

/** A request, or the event of a framework that contains it, as in SvelteKit, Astro and React Router. */
export type RequestOrEvent = Request | { readonly request: Request }

/** Limits handlers of requests. Wraps a handler: `limit(handler)`. */
export interface Limit<Name extends string = string> {
  /** Returns the handler with the limit before it. If the limit rejects a request, the handler doesn't run. */
  <First extends RequestOrEvent = Request, Rest extends readonly unknown[] = [], Answer extends Response | undefined = Response>(
    handler: (first: First, ...rest: Rest) => Answer | Promise<Answer>,
  ): (first: First, ...rest: Rest) => Promise<Answer | Response>
  /**
   * Counts a request, and resolves with the response to send if it is rejected, or with undefined. The promise rejects only if `request` is
   * none.
   *
   * Nothing that depends on the end of the response works here: `skipFailedRequests`, `skipSuccessfulRequests` and `settle` have no
   * effect, and the slots of `concurrency()` are released at once. Wrap the handler instead.
   *
   * @param rest the further arguments of your handler, in which some platforms pass the client's address
   */
  rejection(request: RequestOrEvent, ...rest: readonly unknown[]): Promise<Response | undefined>
  /**
   * Resolves with the decision that this limit would make about a request now, without counting it, or with undefined if the request
   * would pass uncounted. The promise rejects only if `request` is none.
   */
  peek(request: RequestOrEvent, ...rest: readonly unknown[]): Promise<Decision<Name> | undefined>
  /** Returns the decision about a request that this limit has counted, or undefined. With `estimate` it is a `Receipt`. */
  decision(request: RequestOrEvent): HandlerDecision<Name> | undefined
  /** Returns the limit fields for a request that `rejection` has allowed. A wrapped handler's response gets them by itself. */
  headers(request: RequestOrEvent): Record<string, string>
  readonly throttler: Throttler<Name, Request>
}

/** An exchange with the further arguments of its handler. */
class WebExchange extends Exchange {
  platform: Platform = {}
  rest: readonly unknown[] = []
}

/** By their request, and by the request of Node.js from which a framework may make several. */
const exchanges = new WeakMap<object, WebExchange>()

function exchangeOf(request: Request, rest: readonly unknown[]): WebExchange {
  const platform = platformOf(rest[0])
  const { incoming, outgoing } = platform
  const exchange = exchanges.get(request) ?? exchanges.get(incoming ?? request) ?? new WebExchange(request, outgoing)
  for (const one of [request, incoming ?? request]) exchanges.set(one, exchange)
  // A later call may pass fewer arguments.
  if (exchange.rest.length === 0) Object.assign(exchange, { platform, rest })
  return exchange
}

/** Separates the request from the arguments that a platform or framework passes with it. */
function split(first: RequestOrEvent, rest: readonly unknown[]): [request: Request, rest: readonly unknown[]] {
  const given = Object(first) as RequestOrEvent
  // Requests first: the request of a proxy of Next.js also has a member `request`, which throws.
  if ('headers' in given && 'method' in given) return [given, rest]
  if (typeof given.request !== 'object' || given.request === null)
    throw invalidOption('request', first, 'the Request that your handler gets, or an object that contains one as "request"')
  return [given.request, [first, ...rest]]
}

/**
 * Finds the address of clients behind your own proxies: `address: forwardedAddress(1)`. Each proxy appends the address that called it to
 * `X-Forwarded-For`. Addresses further to the left come from the client and are ignored.
 *
 * @param proxies the number of your proxies that each request passes, a whole number from 1 to 100. If requests pass fewer, clients can
 * choose their address
 * @throws WeirError `WEIR_INVALID_OPTION` for any other value
 */
export function forwardedAddress(proxies: number): AddressOf {
  const last = lastForwarded(proxies)
  return (request, ...rest) => {
    const listed = request.headers.get('x-forwarded-for')
    return listed ? last(listed) : addressBy(platformOf(rest[0]), request)
  }
}

/**
 * Throttles handlers of `Request` and `Response`, as Next.js, SvelteKit, Bun, Deno and Cloudflare Workers have them.
 *
 * If a limit is used in several places, it counts a request once, in the first.
 *
 * @param options `{ key, limit, interval, ... }` for one policy, `{ policies, ... }`, `{ throttler, ... }`, or a throttler to share
 * @throws WeirError for options that can't be used: its `code` and message name the option and the allowed values
 *
 * @example
 * const limit = throttle({ key: 'ip', limit: 100, interval: '1m' })
 * export const POST = limit(async (request) => Response.json(await create(request)))
 */
export function throttle<const Name extends string = string, const Plan extends string = never>(
  options: ThrottleOptions<Name, Plan>,
): Limit<PlannedName<Name, Plan>> {
  type Planned = PlannedName<Name, Plan>
  const { address, input } = withoutAddress<AddressOf, ThrottleInput<Request, WebArgs, Planned>>(
    options as unknown as ThrottleOptions<Planned>,
    forwardedAddress,
    'the request',
  )
  const ip = (request: Request) => {
    const { platform = {}, rest = [] } = exchanges.get(request) ?? {}
    return address === undefined ? addressBy(platform, request) : foundAddress(address(request, ...(rest as never[])), 'context.ip')
  }
  const guard = createGuard<Request, WebArgs, Planned>(
    input,
    webReader(ip, (request) => exchanges.get(request)?.platform ?? {}),
  )

  const wrap = (handler: (...args: never[]) => Response | Promise<Response>) => {
    if (typeof handler !== 'function')
      throw invalidOption('handler', handler, 'limit(handler) for a function, or await limit.rejection(request) for a request')
    return (first: RequestOrEvent, ...more: readonly unknown[]): Promise<Response> => {
      const [request, rest] = split(first, more)
      const next = () => handler(...([first, ...more] as never[]))
      return throttled(guard, request, exchangeOf(request, rest), new WebFramework<Planned>(request), next)
    }
  }
  return Object.assign(wrap, {
    throttler: guard.throttler,
    async rejection(first: RequestOrEvent, ...more: readonly unknown[]): Promise<Response | undefined> {
      const [request, rest] = split(first, more)
      const exchange = exchangeOf(request, rest)
      const decision = await checked(guard, request, exchange)
      if (decision === null) return withoutClient(exchange.outgoing)
      if (decision === undefined) return undefined
      if (decision.allowed) {
        withoutEnd(guard, decision, input)
        return undefined
      }
      const framework = new WebFramework<Planned>(request)
      const response = await rejected(guard, request, decision, exchange, framework).catch((error: unknown) => {
        if (error instanceof WebThrottledError) return error.getResponse()
        throw error
      })
      return withFields(guard, response, exchange.fields)
    },
    async peek(first: RequestOrEvent, ...more: readonly unknown[]): Promise<Decision<Planned> | undefined> {
      const [request, rest] = split(first, more)
      exchangeOf(request, rest)
      return guard.peek(request)
    },
    decision: (first: RequestOrEvent) =>
      exchanges.get(split(first, [])[0])?.decisions.get(guard.throttler) as HandlerDecision<Planned> | undefined,
    headers: (first: RequestOrEvent) => ({ ...exchanges.get(split(first, [])[0])?.fields }),
  }) as unknown as Limit<Planned>
}

/** Options that depend on the end of a response. */
const AFTERWARDS = ['skipFailedRequests', 'skipSuccessfulRequests', 'settle']

/** Releases the slots of a request whose response is unknown, and warns about them and about options without effect. */
function withoutEnd<Name extends string>(
  { side, throttler }: Guard<Request, WebArgs, Name>,
  decision: Decision<Name>,
  input: object,
): void {
  const warn = (what: string) => {
    const text = `limit.rejection() can't see the end of a response, so ${what}. Wrap the handler instead: limit(handler).`
    side.warn(new WeirError('WEIR_INVALID_OPTION', text), what)
  }
  if (decision.parts.some(({ policy, cost }) => cost > 0 && policy?.algorithm.slots)) {
    throttler.release(decision)
    warn('it releases slots of concurrency() at once')
  }
  for (const option of AFTERWARDS) if ((input as Record<string, unknown>)[option]) warn(`option "${option}" has no effect`)
}

// A response costs time, and only some functions get it.
const NONE_YET = undefined as unknown as Response

/** Requests and responses without a framework. */
class WebFramework<Name extends string> implements Framework<WebArgs, Name> {
  /** Changed when a response exists, so that functions which run later get it. */
  readonly args: [request: Request, response: Response]

  constructor(request: Request) {
    this.args = [request, NONE_YET]
  }

  responded(response: Response): void {
    this.args[1] = response
  }

  reject({ status, headers }: Rejection<Name>): void {
    this.args[1] = new Response(null, { status, headers })
  }

  error(rejection: Rejection<Name>): Error {
    return new WebThrottledError(rejection)
  }

  answer({ body, status, headers, type }: Rejection<Name>): Response {
    return new Response(body, { status, headers: { ...headers, 'Content-Type': type } })
  }
}

/** An error with the method `getResponse`, which the error handlers of some frameworks call for the response. */
export class WebThrottledError<Name extends string> extends ThrottledError<Name> {
  getResponse(): Response {
    return new Response(this.message, { status: this.status, headers: this.headers })
  }
}
