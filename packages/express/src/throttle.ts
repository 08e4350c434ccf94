import type { Decision, PlannedName, Throttler } from '@weir/core'
import { createGuard, type PolicyName, type SetHeader, ThrottledError, type ThrottleInput } from '@weir/core/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { expressReader } from './reader.ts'

/** What Express calls a middleware with, as far as options such as `handler` see it. */
export type ExpressArgs = readonly [req: Request, res: Response]

/** What `throttle` takes in Express. */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<Request, ExpressArgs, Name, Plan>

/** A middleware with the throttler behind it, e.g. for `await middleware.throttler.close()`. */
export type ThrottleMiddleware<Name extends string = string> = RequestHandler & { readonly throttler: Throttler<Name, Request> }

/**
 * Throttles requests in Express 4 and 5, for `app.use`, a router or a single route.
 *
 * Requests that pass are not awaited for. `req.throttle` holds the decision. A throttler that stands in several places
 * (app, router, route) counts a request once, in the first.
 *
 * @param options `{ limit, interval, ... }` for one policy, `{ policies, ... }`, `{ throttler, ... }`, or a throttler to share
 * @throws WeirError for options that can't be used: its `code` and message name the option and what is allowed
 *
 * @example
 * app.use(throttle({ limit: 300, interval: '1m', key: 'ip', store: redisStore(new Redis()) }))
 */
export function throttle<const Name extends string = string, const Plan extends string = never>(
  options: ThrottleOptions<Name, Plan>,
): ThrottleMiddleware<PlannedName<Name, Plan>> {
  const guard = createGuard<Request, ExpressArgs, Name>(options as ThrottleOptions<Name>, expressReader)

  const go = (req: Request, res: Response, next: NextFunction, decision: Decision<Name> | undefined) => {
    if (decision === undefined) return next()
    const set = req.throttle === undefined ? setHeader : addHeader
    req.throttle = decision as Decision<PolicyName>
    if (!decision.allowed) return refuse(req, res, next, decision, set)
    guard.writeHeaders(decision, res, set)
    guard.watch(decision, res, [req, res])
    next()
  }

  const refuse = (req: Request, res: Response, next: NextFunction, decision: Decision<Name>, set: SetHeader<Response>) => {
    if (res.headersSent) {
      guard.report('late', 'A request was not refused', 'its response had begun before')
      return next()
    }
    const refusal = guard.refuse(req, decision)
    for (const name in refusal.headers) set(res, name, refusal.headers[name] as string)
    if (guard.throws) return next(new ThrottledError(refusal))
    res.statusCode = refusal.status
    if (guard.handle(refusal, [req, res])) return
    res.setHeader('Content-Type', refusal.type)
    res.setHeader('Content-Length', Buffer.byteLength(refusal.body))
    res.end(req.method === 'HEAD' ? undefined : refusal.body)
  }

  const middleware = (req: Request, res: Response, next: NextFunction) => {
    if (!guard.strict) return go(req, res, next, guard.check(req, req.throttle))
    const decision = guard.checkAsync(req, req.throttle)
    if (!(decision instanceof Promise)) return go(req, res, next, decision)
    void decision.then((decided) => go(req, res, next, decided))
  }
  return Object.assign(middleware, { throttler: guard.throttler })
}

const setHeader: SetHeader<Response> = (res, name, value) => {
  res.setHeader(name, value)
}

/** Adds to what another throttler said before, where the field is a list. */
const addHeader: SetHeader<Response> = (res, name, value) => {
  const before = name.startsWith('RateLimit') ? res.getHeader(name) : undefined
  res.setHeader(name, before === undefined ? value : `${String(before)}, ${value}`)
}

declare global {
  namespace Express {
    interface Request {
      /** What Weir decided about this request; undefined when it passed uncounted. */
      throttle?: Decision<PolicyName>
    }
  }
}
