import { getConnInfo } from '@hono/node-server/conninfo'
import type { Decision, Throttler } from '@weir/core'
import { createGuard, type RequestReader, type SetHeader, type ThrottleInput } from '@weir/core/http'
import type { Context, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'

type Args = readonly [c: Context]

const honoReader: RequestReader<Context> = {
  method: (c) => c.req.method,
  path: (c) => c.req.url,
  // A middleware of the whole application runs before the routes: paths are folded instead.
  route: () => undefined,
  ip: (c) => getConnInfo(c).remote.address,
  header: (c, name) => c.req.header(name),
}

const setHeader: SetHeader<Context> = (c, name, value) => c.header(name, value)

declare module 'hono' {
  interface ContextVariableMap {
    /** What Weir decided about this request; undefined when it passed uncounted. */
    throttle: Decision | undefined
  }
}

/** Throttles the requests of a Hono application on Node.js. */
export function throttle(input: ThrottleInput<Context, Args>): MiddlewareHandler & { readonly throttler: Throttler<string, Context> } {
  const guard = createGuard<Context, Args>(input, honoReader)
  const middleware: MiddlewareHandler = async (c, next) => {
    const decision = await guard.check(c, c.get('throttle'))
    if (decision === undefined) return next()
    c.set('throttle', decision)
    if (!decision.allowed) {
      const { body, status, headers, type } = await guard.refuse(c, decision)
      return c.body(body, status as ContentfulStatusCode, { ...headers, 'Content-Type': type })
    }
    if (c.env.outgoing !== undefined) guard.watch(decision, c.env.outgoing, [c])
    await next()
    // Afterwards, so that they are on answers that a handler or an error made from nothing, too.
    guard.writeHeaders(decision, c, setHeader)
  }
  return Object.assign(middleware, { throttler: guard.throttler })
}
