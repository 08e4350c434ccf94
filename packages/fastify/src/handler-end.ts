import { handlerStarts } from '@weir/core/http'
import type { FastifyReply, RouteHandlerMethod } from 'fastify'

/** The same for a handler each time: a GET route and the HEAD route that Fastify makes of it are known by it. */
const reporting = new WeakMap<RouteHandlerMethod, RouteHandlerMethod>()

/**
 * A handler that reports when it has ended: once its promise has settled, or, if it returns none, once it has called `reply.send`. A
 * reply that it has hijacked is its own, and Fastify reports nothing more of it.
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
    if (result instanceof Promise) result.then(ended, ended)
    else if (reply.sent && !reply.raw.writableEnded) ended()
    else sent(ended)
    return result
  }
  reporting.set(handler, made)
  return made
}

/** Calls a function once `reply.send` has been called. No hook does that for the requests with slots alone. */
function whenSent(reply: FastifyReply): (then: () => void) => void {
  const { send } = reply
  let sent = false
  let waiting: (() => void) | undefined
  reply.send = function (payload) {
    sent = true
    waiting?.()
    return send.call(this, payload)
  }
  return (then) => {
    if (sent) then()
    else waiting = then
  }
}
