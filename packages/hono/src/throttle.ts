import type { ServerResponse } from 'node:http'
import type { Decision, PlannedName, Throttler } from '@weir/core'
import {
  createGuard,
  type HandlerDecision,
  handlerStarts,
  invalidOption,
  isListField,
  type SetHeader,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/adapter'
import type { Context, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type AddressOf, forwardedAddress } from './address.ts'
import { connectionOf } from './connection.ts'
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

/** Limit fields that throttlers have written for a request. */
type Fields = Record<string, string>

/** The context variable that keeps the fields of a request until its response exists. */
const FIELDS = 'weir:fields'

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
  const { address, input } = withoutAddress(options as unknown as ThrottleOptions<Planned>)
  const guard = createGuard<Context, HonoArgs, Planned>(input, honoReader(address))

  const reject = async (c: Context, decision: Decision<Planned>): Promise<Response> => {
    const rejection = await guard.reject(c, decision)
    for (const name in rejection.headers) c.header(name, rejection.headers[name])
    if (guard.throws) throw new HonoThrottledError(rejection)
    c.status(rejection.status as ContentfulStatusCode)
    const outgoing = connectionOf(c).outgoing ?? NO_CONNECTION
    let response: unknown
    const became = await guard.handle(rejection, [c], outgoing, (value) => {
      response = value
    })
    if (became === 'left' || outgoing.headersSent) return alreadySent()
    if (became === 'answered') {
      if (response instanceof Response) return response
      if (!outgoing.destroyed) guard.report('handler', 'Option "handler"', 'it returned no Response, as c.json() or c.text() make one')
    }
    for (const name of ['Content-Encoding', 'Content-Length', 'Transfer-Encoding']) c.header(name, undefined)
    return c.body(rejection.body, rejection.status as ContentfulStatusCode, { 'Content-Type': rejection.type })
  }

  const middleware: MiddlewareHandler = async (c, next) => {
    const earlier: Decision | undefined = c.get('throttle')
    const { outgoing } = connectionOf(c)
    const checked = guard.check(c, earlier, outgoing as ServerResponse)
    const decision = checked instanceof Promise ? await checked : checked
    // The client has left, so the request needs no response.
    if (decision === null) return alreadySent()
    if (decision === undefined) return next()
    c.set('throttle', decision)
    const before: Fields | undefined = c.get(FIELDS)
    const fields = before ?? {}
    if (before === undefined) c.set(FIELDS, fields)
    guard.writeHeaders(decision, fields, addField)
    if (!decision.allowed) return reject(c, decision)
    if (outgoing !== undefined) guard.watch(decision, outgoing, [c])
    const ended = outgoing === undefined ? undefined : handlerStarts(outgoing)
    if (ended === null) return alreadySent()
    try {
      await next()
    } catch (error) {
      // Hono answers all other errors itself, so this one becomes a 500.
      if (outgoing === undefined) guard.settle(decision, 500, [c])
      throw error
    } finally {
      ended?.()
    }
    if (outgoing === undefined) guard.settle(decision, c.res.status, [c])
    if (before !== undefined) return
    try {
      setFields(c, fields)
    } catch (error) {
      guard.report('headers', 'The rate limit fields could not be set', error)
    }
  }
  return Object.assign(middleware, { throttler: guard.throttler, peek: (c: Context) => guard.peek(c) })
}

/** An error with the method `getResponse`, which Hono's own error handler calls for the response. */
class HonoThrottledError<Name extends string> extends ThrottledError<Name> {
  getResponse(): Response {
    return new Response(this.message, { status: this.status, headers: this.headers })
  }
}

/** Separates the adapter's own option from the others. */
function withoutAddress<Name extends string>(
  options: ThrottleOptions<Name>,
): { address: AddressOf | undefined; input: ThrottleInput<Context, HonoArgs, Name> } {
  if (typeof options !== 'object' || options === null || !Object.hasOwn(options, 'address')) return { address: undefined, input: options }
  const { address, ...input } = options
  if (address !== undefined && (typeof address !== 'function' || address === (forwardedAddress as unknown))) {
    throw invalidOption('address', address, 'forwardedAddress(1) for one proxy, or a function of the context')
  }
  return { address, input: input as ThrottleInput<Context, HonoArgs, Name> }
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addField: SetHeader<Fields> = (fields, name, value) => {
  const before = isListField(name, value) ? fields[name] : undefined
  fields[name] = before === undefined ? value : `${before}, ${value}`
}

/** Sets the fields on the response. The headers of a response from `fetch` are immutable, so it is copied. */
function setFields(c: Context, fields: Fields): void {
  try {
    for (const name in fields) c.res.headers.set(name, fields[name] as string)
  } catch {
    // The constructor throws for a response without a valid status, such as Response.error().
    c.res = new Response(c.res.body, c.res)
    for (const name in fields) c.res.headers.set(name, fields[name] as string)
  }
}

/** Replaces the response of Node.js for a guard if there is no connection. It has only the members that a guard uses. */
const NO_CONNECTION = { headersSent: false, writableEnded: false, on() {}, destroy() {} } as unknown as ServerResponse

/** A response that `@hono/node-server` does not send, because the real one was sent already. */
function alreadySent(): Response {
  const response = new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  // The server sends its own kind of Response without reading this header unless the body was accessed before.
  void response.body
  return response
}

declare module 'hono' {
  interface ContextVariableMap {
    /** Weir's decision about this request, or undefined if it passed uncounted. */
    throttle: HandlerDecision | undefined
  }
}
