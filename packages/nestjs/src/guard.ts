import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import type { Decision } from '@weir/core'
import { type Guard, type HandlerDecision, isListField, loadCode, type SetHeader } from '@weir/core/adapter'
import { decisionOf, keepDecision } from './decisions.ts'
import { AnsweredException, ThrottledException } from './exception.ts'
import { ThrottleLimits } from './limits.ts'
import type { NestArgs } from './options.ts'
import { type ResponseLike, rawOf, type Transport, transportOf } from './transport.ts'

/**
 * Limits HTTP requests, fields of GraphQL and messages of WebSockets. `ThrottleModule` applies it to every handler. With `{ guard: false }`
 * you apply it yourself: `@UseGuards(AuthGuard, ThrottleGuard)`. Messages of microservices are not limited.
 */
export class ThrottleGuard implements CanActivate {
  readonly #limits: ThrottleLimits

  constructor(limits: ThrottleLimits) {
    this.#limits = limits
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const transport = transportOf(context)
    if (transport === undefined) return true
    const guard = this.#limits.guardOf(context)
    if (guard === false) return true
    const earlier = decisionOf(context)
    const checked = transport.kind === 'http' ? guard.check(context, earlier, rawOf(transport.response)) : guard.check(context, earlier)
    if (checked instanceof Promise) return checked.then((decision) => go(guard, context, transport, decision, earlier))
    return go(guard, context, transport, checked, earlier)
  }

  /**
   * Resolves with the decision that the limits of a handler would make about its request now, without counting it, or with undefined if
   * the request would pass uncounted. The promise never rejects. Use it in interceptors, pipes and guards, which get an `ExecutionContext`.
   */
  async peek(context: ExecutionContext): Promise<Decision | undefined> {
    const guard = transportOf(context) !== undefined && this.#limits.guardOf(context)
    return guard ? guard.peek(context) : undefined
  }
}
// Calls decorators as functions, because the compiler that builds this package does not support them.
Injectable()(ThrottleGuard)
Inject(ThrottleLimits)(ThrottleGuard, undefined, 0)

function go(
  guard: Guard<ExecutionContext, NestArgs>,
  context: ExecutionContext,
  transport: Transport,
  decision: Decision | undefined | null,
  earlier: Decision | undefined,
): boolean | Promise<boolean> {
  if (decision === undefined) return true
  // The client has left, so the request needs no response.
  if (decision === null) return false
  keepDecision(context, decision)
  if (transport.kind !== 'http') {
    // Nest does not report the end of a field or message, so its slots are released at once, and its reserved units count.
    guard.throttler.release(decision)
    ;(decision as HandlerDecision).settle?.()
    return decision.allowed || reject(guard, context, transport, decision)
  }
  if (!decision.allowed) return reject(guard, context, transport, decision, earlier === undefined ? setHeader : addHeader)
  guard.writeHeaders(decision, transport.response, earlier === undefined ? setHeader : addHeader)
  guard.watch(decision, rawOf(transport.response), [context])
  return true
}

async function reject(
  guard: Guard<ExecutionContext, NestArgs>,
  context: ExecutionContext,
  transport: Transport,
  decision: Decision,
  set: SetHeader<ResponseLike> = setHeader,
): Promise<boolean> {
  const rejection = await guard.reject(context, decision)
  if (transport.kind === 'ws') {
    // Loaded at the first rejected message, because most applications have no gateway.
    const websockets = await loadCode(() => import('@nestjs/websockets')).catch(() => undefined)
    // Without that package, Nest answers with its message for failures of any kind. The message is rejected anyway.
    if (websockets === undefined) throw new ThrottledException(rejection)
    const { WsException } = websockets
    const { message } = new ThrottledException(rejection)
    throw new WsException({ status: 'error', error: 'Too Many Requests', message, retryAfterMs: retryAfterMsOf(rejection.headers) })
  }
  if (transport.kind === 'graphql') throw new ThrottledException(rejection)
  if (!rawOf(transport.response).headersSent) {
    for (const name in rejection.headers) set(transport.response, name, rejection.headers[name] as string)
  }
  throw guard.throws ? new ThrottledException(rejection) : new AnsweredException(rejection, guard, context)
}

function retryAfterMsOf(headers: Readonly<Record<string, string>>): number | null {
  const seconds = headers['Retry-After']
  return seconds === undefined ? null : Number(seconds) * 1000
}

const setHeader: SetHeader<ResponseLike> = (response, name, value) => {
  response.header(name, value)
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addHeader: SetHeader<ResponseLike> = (response, name, value) => {
  const before = isListField(name, value) ? beforeOf(response, name) : undefined
  response.header(name, before === undefined ? value : `${String(before)}, ${value}`)
}

/** The value of a response header. The responses of Express and the replies of Fastify both have this method. */
function beforeOf(response: ResponseLike, name: string): unknown {
  return (response as unknown as { getHeader(name: string): unknown }).getHeader(name)
}
