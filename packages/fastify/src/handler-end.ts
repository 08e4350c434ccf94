import type { Http2ServerResponse } from 'node:http2'
import { handlerStarts } from '@weir/core/adapter'
import type { FastifyReply, RouteHandlerMethod } from 'fastify'

/** The same for a handler each time: a GET route and the HEAD route that Fastify makes of it are known by it. */
const reporting = new WeakMap<RouteHandlerMethod, RouteHandlerMethod>()

/**
 * A handler that reports when it has ended: once its promise has settled, or, if it returns none, once it has answered by `reply.send`
 * or has begun to answer by itself (`reply.hijack`, `reply.raw`). Fastify reports nothing more of such an answer, so its request keeps
 * its slots as long as the response is open.
 */
export function reportingEnd(handler: RouteHandlerMethod): RouteHandlerMethod {
  const known = reporting.get(handler)
  if (known !== undefined) return known
  const made: RouteHandlerMethod = function (request, reply) {
    // Handlers of WebSockets are called with something else.
    const ended = handlerStarts(reply?.raw)
    if (ended === undefined) return handler.call(this, request, reply)
    // Its client has left.
    if (ended === null) return
    const sent = whenSent(reply)
    let result: ReturnType<typeof handler>
    try {
      result = handler.call(this, request, reply)
    } catch (error) {
      ended()
      throw error
    }
    // A reply is thenable too, but settles with its connection.
    const pending = result !== reply && typeof (result as Partial<PromiseLike<unknown>> | undefined)?.then === 'function'
    if (!pending) {
      sent(ended)
      return result
    }
    // Over HTTP/2 a reply never settles for an async handler that returns it once its client has left.
    beforeCall(reply, 'then', () => {
      const { stream } = reply.raw as { readonly stream?: Http2ServerResponse['stream'] }
      if (stream?.destroyed === true && !reply.sent) ended()
    })
    const promise = Promise.resolve(result)
    promise.then(ended, ended)
    // Some thenables work anew each time that they are waited for.
    return promise
  }
  reporting.set(handler, made)
  return made
}

/** All that begins an answer without `reply.send`. Methods, since a response whose client has left emits nothing more. */
const RAW = ['writeHead', 'flushHeaders', 'write', 'end', 'destroy'] as const

/** Calls a function once a reply has been sent, or is answered without Fastify. No hook does that for the requests with slots alone. */
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

/** Calls a function whenever a method of an object is about to be called. */
function beforeCall<Method extends string>(target: { [_ in Method]: (...args: never) => unknown }, method: Method, then: () => void): void {
  const original = target[method] as (...args: unknown[]) => unknown
  target[method] = function (this: unknown, ...args: unknown[]) {
    then()
    return original.apply(this, args)
  }
}
