import type { Http2ServerResponse } from 'node:http2'
import { handlerStarts } from '@weir/core/adapter'
import type { FastifyReply, RouteHandlerMethod } from 'fastify'

/** One wrapper per handler, because `RouteLimits` finds the GET route of a HEAD route that Fastify added by their common handler. */
const reporting = new WeakMap<RouteHandlerMethod, RouteHandlerMethod>()

/**
 * Wraps a handler so that it reports its end: when its promise settles. If it returns no promise, the end is its call of `reply.send`, or
 * the first use of `reply.hijack` or `reply.raw`. Fastify reports nothing more about a hijacked or raw response, so its request keeps its
 * slots and reservations until the response is closed.
 */
export function reportingEnd(handler: RouteHandlerMethod): RouteHandlerMethod {
  const known = reporting.get(handler)
  if (known !== undefined) return known
  const made: RouteHandlerMethod = function (request, reply) {
    // Handlers of WebSockets get no reply.
    const ended = handlerStarts(reply?.raw)
    if (ended === undefined) return handler.call(this, request, reply)
    // The client has left.
    if (ended === null) return
    const sent = whenSent(reply)
    let result: ReturnType<typeof handler>
    try {
      result = handler.call(this, request, reply)
    } catch (error) {
      ended()
      throw error
    }
    // A reply is also thenable, but it settles with its connection.
    const pending = result !== reply && typeof (result as Partial<PromiseLike<unknown>> | undefined)?.then === 'function'
    if (!pending) {
      sent(ended)
      return result
    }
    // Over HTTP/2, if the client has left, the reply that an async handler returns never settles.
    beforeCall(reply, 'then', () => {
      const { stream } = reply.raw as { readonly stream?: Http2ServerResponse['stream'] }
      if (stream?.destroyed === true && !reply.sent) ended()
    })
    const promise = Promise.resolve(result)
    promise.then(ended, ended)
    // Some thenables, such as queries, start their work again at each `then`.
    return promise
  }
  reporting.set(handler, made)
  return made
}

/** Methods that begin a response without `reply.send`. Events don't suffice, because a response emits none after its client has left. */
const RAW = ['writeHead', 'flushHeaders', 'write', 'end', 'destroy'] as const

/** Calls a function when a reply is sent or is answered without Fastify. A hook would run for requests without slots too. */
function whenSent(reply: FastifyReply): (then: () => void) => void {
  let sent = false
  let waiting = (): void => {
    sent = true
  }
  const began = (): void => waiting()
  beforeCall(reply, 'send', began)
  return (then) => {
    if (sent || reply.sent || reply.raw.headersSent) return then()
    waiting = then
    beforeCall(reply, 'hijack', began)
    for (const method of RAW) beforeCall(reply.raw, method, began)
  }
}

/** Calls a function before each call of a method of an object. */
function beforeCall<Method extends string>(target: { [_ in Method]: (...args: never) => unknown }, method: Method, then: () => void): void {
  const original = target[method] as (...args: unknown[]) => unknown
  target[method] = function (this: unknown, ...args: unknown[]) {
    then()
    return original.apply(this, args)
  }
}
