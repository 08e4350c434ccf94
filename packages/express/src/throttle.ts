import type { Decision, PlannedName, Throttler } from '@weir/core'
import {
  createGuard,
  type HandlerDecision,
  isListField,
  type Rejection,
  type SetHeader,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/adapter'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { expressReader } from './reader.ts'

/** The arguments of an Express middleware, as options such as `handler` receive them. */
export type ExpressArgs = readonly [req: Request, res: Response]

/** Options of `throttle` in Express. */
export type ThrottleOptions<Name extends string = string, Plan extends string = string> = ThrottleInput<Request, ExpressArgs, Name, Plan>

/** A middleware with the throttler behind it, e.g. for `await middleware.throttler.close()`. */
export type ThrottleMiddleware<Name extends string = string> = RequestHandler & {
  readonly throttler: Throttler<Name, Request>
  /**
   * Resolves with the decision that this middleware would make about a request now, without counting it, or with undefined if the request
   * would pass uncounted. The promise never rejects.
   */
  peek(req: Request): Promise<Decision<Name> | undefined>
}

/**
 * Throttles requests in Express 4 and 5, for `app.use`, a router or a single route.
 *
 * It calls `next` at once unless the decision is a promise. `req.throttle` contains the decision. If a throttler is used in several
 * places (app, router, route), it counts a request once, in the first.
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
  const guard = createGuard<Request, ExpressArgs, Planned>(options as unknown as ThrottleOptions<Planned>, expressReader)

  const go = (req: Request, res: Response, next: NextFunction, decision: Decision<Planned> | undefined | null) => {
    if (decision === undefined) return next()
    // The client has left, so the request needs no response.
    if (decision === null) return
    const set = req.throttle === undefined ? setHeader : addHeader
    req.throttle = decision as HandlerDecision
    if (!decision.allowed) return reject(req, res, next, decision, set)
    guard.writeHeaders(decision, res, set)
    guard.watch(decision, res, [req, res])
    next()
  }

  const reject = (req: Request, res: Response, next: NextFunction, decision: Decision<Planned>, set: SetHeader<Response>) => {
    if (res.headersSent) {
      guard.report('late', 'A request was not rejected', 'its response had begun before')
      return next()
    }
    const rejection = guard.reject(req, decision)
    if (!(rejection instanceof Promise)) return answer(req, res, next, rejection, set)
    rejection.then((made) => res.headersSent || answer(req, res, next, made, set)).catch(next)
  }

  const answer = (req: Request, res: Response, next: NextFunction, rejection: Rejection<Planned>, set: SetHeader<Response>) => {
    for (const name in rejection.headers) set(res, name, rejection.headers[name] as string)
    if (guard.throws) return next(new ThrottledError(rejection))
    res.statusCode = rejection.status
    const handled = guard.handle(rejection, [req, res], res)
    if (!(handled instanceof Promise)) return handled === 'failed' ? answerStandard(req, res, rejection) : undefined
    handled.then((became) => became === 'failed' && answerStandard(req, res, rejection)).catch(next)
  }

  const middleware = (req: Request, res: Response, next: NextFunction) => {
    const decision = guard.check(req, req.throttle, res)
    if (!(decision instanceof Promise)) return go(req, res, next, decision)
    // Other code, such as a timeout of the application, may have sent a response in the meantime.
    decision.then((decided) => res.writableEnded || go(req, res, next, decided)).catch(next)
  }
  return Object.assign(middleware, { throttler: guard.throttler, peek: (req: Request) => guard.peek(req) })
}

/** Writes the standard answer, and removes headers that a failed handler may have set for its own body. */
function answerStandard(req: Request, res: Response, { status, type, body }: Rejection): void {
  if (res.headersSent) return
  res.statusCode = status
  res.removeHeader('Content-Encoding')
  res.removeHeader('Transfer-Encoding')
  res.setHeader('Content-Type', type)
  res.setHeader('Content-Length', Buffer.byteLength(body))
  res.end(req.method === 'HEAD' ? undefined : body)
}

const setHeader: SetHeader<Response> = (res, name, value) => {
  res.setHeader(name, value)
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addHeader: SetHeader<Response> = (res, name, value) => {
  const before = isListField(name, value) ? res.getHeader(name) : undefined
  res.setHeader(name, before === undefined ? value : `${String(before)}, ${value}`)
}

declare global {
  namespace Express {
    interface Request {
      /** Weir's decision about this request, or undefined if it passed uncounted. */
      throttle?: HandlerDecision
    }
  }
}
