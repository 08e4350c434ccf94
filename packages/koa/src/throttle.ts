import type { Decision, PlannedName, Throttler } from '@weir/core'
import type { Handled } from '@weir/core/adapter'
import {
  createGuard,
  type HandlerDecision,
  handlerStarts,
  invalidOption,
  isListField,
  LIMIT_FIELDS,
  type Rejection,
  type SetHeader,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/adapter'
import type { Context, Middleware, Next } from 'koa'
import { koaReader, type RouterLike } from './reader.ts'

/** The arguments of a Koa middleware, as options such as `handler` receive them. */
export type KoaArgs = readonly [ctx: Context]

/** Options of `throttle` in Koa. */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<Context, KoaArgs, Name, Plan> & {
  /**
   * Counts requests by the routes of this `@koa/router`, although it runs later.
   *
   * Without it, `key: 'route'` uses the path before the router.
   *
   * @default none
   */
  readonly router?: RouterLike
}

/** A middleware with the throttler behind it, e.g. for `await middleware.throttler.close()`. */
export type ThrottleMiddleware<Name extends string = string> = Middleware & {
  readonly throttler: Throttler<Name, Context>
  /**
   * Resolves with the decision that this middleware would make about a request now, without counting it, or with undefined if the request
   * would pass uncounted. The promise never rejects.
   */
  peek(ctx: Context): Promise<Decision<Name> | undefined>
}

/**
 * Throttles requests in Koa 2 and 3, for `app.use`, a router or a single route.
 *
 * `ctx.state.throttle` contains the decision. Error responses (`ctx.throw`) keep the limit fields, although Koa removes all other headers.
 * If a throttler is used in several places (app, router, route), it counts a request once, in the first.
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
  const { router, input } = withoutRouter(options as unknown as ThrottleOptions<Planned>)
  const guard = createGuard<Context, KoaArgs, Planned>(input, koaReader(router))

  const reject = (ctx: Context, decision: Decision<Planned>, set: SetHeader<Context>): void | Promise<void> => {
    const rejection = guard.reject(ctx, decision)
    return rejection instanceof Promise ? rejection.then((made) => answer(ctx, made, set)) : answer(ctx, rejection, set)
  }

  const answer = (ctx: Context, rejection: Rejection<Planned>, set: SetHeader<Context>): void | Promise<void> => {
    if (ctx.headerSent) return
    for (const name in rejection.headers) set(ctx, name, rejection.headers[name] as string)
    if (guard.throws) throw new ThrottledError(rejection)
    // An earlier middleware may have left the response to a later one, which does not run.
    ctx.respond = true
    ctx.status = rejection.status
    const handled = guard.handle(rejection, [ctx], ctx.res)
    return handled instanceof Promise
      ? handled.then((became) => answerUnhandled(ctx, rejection, became))
      : answerUnhandled(ctx, rejection, handled)
  }

  const middleware = async (ctx: Context, next: Next): Promise<void> => {
    const earlier: Decision | undefined = ctx.state['throttle']
    const checked = guard.check(ctx, earlier, ctx.res)
    const decision = checked instanceof Promise ? await checked : checked
    // Other code, such as a timeout of the application, may have sent a response in the meantime, or the client has left.
    if (decision === null || (checked instanceof Promise && ctx.res.writableEnded)) return
    if (decision === undefined) return next()
    ctx.state['throttle'] = decision
    const set = earlier === undefined ? setHeader : addHeader
    if (!decision.allowed && !ctx.headerSent) return reject(ctx, decision, set)
    if (!decision.allowed) guard.report('late', 'A request was not rejected', 'its response had begun before')
    guard.writeHeaders(decision, ctx, set)
    guard.watch(decision, ctx.res, [ctx])
    const ended = handlerStarts(ctx.res)
    if (ended === null) return
    try {
      await next()
    } catch (error) {
      keepFields(ctx, error)
      throw error
    } finally {
      ended?.()
    }
  }
  return Object.assign(middleware, { throttler: guard.throttler, peek: (ctx: Context) => guard.peek(ctx) })
}

function withoutRouter<Name extends string>(
  options: ThrottleOptions<Name>,
): { router: RouterLike | undefined; input: ThrottleInput<Context, KoaArgs, Name> } {
  if (typeof options !== 'object' || options === null || !Object.hasOwn(options, 'router')) return { router: undefined, input: options }
  const { router, ...input } = options
  if (router !== undefined && (typeof router !== 'object' || typeof router?.match !== 'function')) {
    throw invalidOption('router', router, "the application's router, an instance of @koa/router")
  }
  return { router, input: input as ThrottleInput<Context, KoaArgs, Name> }
}

/** Writes the standard answer if the handler failed, and removes headers that it may have set for its own body. */
function answerUnhandled(ctx: Context, { status, type, body }: Rejection, became: Handled): void {
  // Koa would end a response that the handler is still writing.
  if (became === 'left') ctx.respond = false
  if (became !== 'failed' || ctx.headerSent) return
  ctx.status = status
  ctx.remove('Content-Encoding')
  ctx.remove('Transfer-Encoding')
  ctx.body = body
  ctx.set('Content-Type', type)
}

const setHeader: SetHeader<Context> = (ctx, name, value) => {
  ctx.res.setHeader(name, value)
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addHeader: SetHeader<Context> = (ctx, name, value) => {
  const before = isListField(name, value) ? ctx.res.getHeader(name) : undefined
  ctx.res.setHeader(name, before === undefined ? value : `${String(before)}, ${value}`)
}

/** Copies the limit fields to an error, because Koa removes every header before it answers one, and then sets the error's own headers. */
function keepFields(ctx: Context, error: unknown): void {
  if (typeof error !== 'object' || error === null || ctx.headerSent) return
  const carrier = error as { headers?: Record<string, unknown> }
  const headers: Record<string, unknown> = { ...carrier.headers }
  for (const name of LIMIT_FIELDS) {
    const value = ctx.res.getHeader(name)
    if (value !== undefined) headers[name] = value
  }
  try {
    carrier.headers = headers
  } catch {
    // A frozen error is answered without the fields.
  }
}

declare module 'koa' {
  interface DefaultState {
    /** Weir's decision about this request, or undefined if it passed uncounted. */
    throttle?: HandlerDecision
  }
}
