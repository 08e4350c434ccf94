import type { Decision, PlannedName, Throttler } from '@weir/core'
import { createGuard, type HandlerDecision, type Rejection, type ThrottleInput } from '@weir/core/adapter'
import { Ending, Exchange, type Framework, throttled, WebThrottledError, withoutAddress } from '@weir/web/adapter'
import type { Context, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type AddressOf, forwardedAddress } from './address.ts'
import { platformIn } from './platform.ts'
import { honoReader } from './reader.ts'

/** The arguments of a Hono handler, as options such as `handler` receive them. */
export type HonoArgs = readonly [c: Context]

/** Options of `throttle` in Hono. A `handler` returns the response, e.g. `(c, rejection) => c.json({ error: 'slow down' })`. */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<Context, HonoArgs, Name, Plan> & {
  /**
   * Finds the client's address, for `key: 'ip'` and address lists: `forwardedAddress(1)` behind one proxy, or a function of the context for
   * platforms that report it in another way.
   *
   * @default the other end of the connection
   */
  readonly address?: AddressOf
}

/** A middleware with the throttler behind it, e.g. for `await middleware.throttler.close()`. */
export type ThrottleMiddleware<Name extends string = string> = MiddlewareHandler & {
  readonly throttler: Throttler<Name, Context>
  /**
   * Resolves with the decision that this middleware would make about a request now, without counting it, or with undefined if the request
   * would pass uncounted. The promise never rejects.
   */
  peek(c: Context): Promise<Decision<Name> | undefined>
}

/** The context variable that keeps the notes about a request. */
const EXCHANGE = 'weir:exchange'

/**
 * Throttles requests in Hono 4 on Node.js, for `app.use` or a single route.
 *
 * `c.get('throttle')` contains the decision. The limit fields are set on every finished response, including those of error handlers and
 * responses from `fetch`. If a throttler is used in several places, it counts a request once, in the first.
 *
 * @param options `{ key, limit, interval, ... }` for one policy, `{ policies, ... }`, `{ throttler, ... }`, or a throttler to share
 * @throws WeirError for options that can't be used: its `code` and message name the option and the allowed values
 *
 * @example
 * app.use(throttle({ limit: 300, interval: '1m', key: 'ip', store: redisStore(new Redis()) }))
 */
export function throttle<const Name extends string = string, const Plan extends string = never>(
  options: ThrottleOptions<Name, Plan>,
): ThrottleMiddleware<PlannedName<Name, Plan>> {
  type Planned = PlannedName<Name, Plan>
  const { address, input } = withoutAddress<AddressOf, ThrottleInput<Context, HonoArgs, Planned>>(
    options as unknown as ThrottleOptions<Planned>,
    forwardedAddress,
    'the context',
  )
  const guard = createGuard<Context, HonoArgs, Planned>(input, honoReader(address))

  const middleware: MiddlewareHandler = async (c, next) => {
    const exchange = exchangeOf(c)
    const response = await throttled(guard, c, exchange, new HonoFramework<Planned>(c), async () => {
      await next()
      // Reading it would make an empty one with status 200, in place of Hono's error for handlers without a response.
      return c.finalized ? c.res : (undefined as unknown as Response)
    })
    if (c.finalized && response !== c.res) {
      // Without this, Hono would set the headers of the old response again.
      c.res = undefined
      c.res = response
    }
    return response
  }
  return Object.assign(middleware, { throttler: guard.throttler, peek: (c: Context) => guard.peek(c) })
}

/** Returns what throttlers have noted about a request. */
function exchangeOf(c: Context): Exchange {
  let exchange: Exchange | undefined = c.get(EXCHANGE)
  if (exchange === undefined) {
    const { outgoing, socket, address } = platformIn(c)
    const served = socket !== undefined || address !== undefined
    exchange = new Exchange(c.req.raw, outgoing ?? (served ? undefined : new EndsAtOnce(c.req.raw)))
    c.set(EXCHANGE, exchange)
  }
  return exchange
}

/** Ends with the handler, because nothing may read the body of a response to `app.request()`. */
class EndsAtOnce extends Ending {
  override follow(response: Response): Response {
    this.statusCode = response?.status ?? 500
    this.end(true)
    return response
  }
}

/** The parts of a request that only Hono has. */
class HonoFramework<Name extends string> implements Framework<HonoArgs, Name> {
  readonly args: HonoArgs
  readonly #c: Context

  constructor(c: Context) {
    this.#c = c
    this.args = [c]
  }

  decided(decision: Decision<Name>): void {
    this.#c.set('throttle', decision as Decision)
  }

  reject({ headers, status }: Rejection<Name>): void {
    for (const name in headers) this.#c.header(name, headers[name])
    this.#c.status(status as ContentfulStatusCode)
  }

  error(rejection: Rejection<Name>): Error {
    for (const name in rejection.headers) this.#c.header(name, rejection.headers[name])
    return new WebThrottledError(rejection)
  }

  answer({ body, status, type }: Rejection<Name>): Response {
    for (const name of ['Content-Encoding', 'Content-Length', 'Transfer-Encoding']) this.#c.header(name, undefined)
    return this.#c.body(body, status as ContentfulStatusCode, { 'Content-Type': type })
  }
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Weir's decision about this request, or undefined if it passed uncounted. */
    throttle: HandlerDecision | undefined
  }
}
