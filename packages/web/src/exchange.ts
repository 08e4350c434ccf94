import type { ServerResponse } from 'node:http'
import { type Decision, WeirError } from '@weir/core'
import { type Guard, handlerStarts, isListField, keepRequest, type Rejection, type SetHeader } from '@weir/core/adapter'
import { Ending, isSwitch, reportsClients } from './ending.ts'

/** Limit fields that throttlers have written for a request. */
export type Fields = Record<string, string>

/** The notes of all throttlers about one request. */
export class Exchange {
  readonly fields: Fields = {}
  /** By throttler. */
  readonly decisions: Map<object, Decision> = new Map()
  readonly #request: Request
  outgoing: ServerResponse | Ending
  /** Whether a throttler already waits for the response. */
  #begun = false

  constructor(request: Request, outgoing: ServerResponse | Ending | undefined) {
    this.#request = request
    this.outgoing = outgoing ?? new Ending(request)
  }

  /** Returns whether this throttler is the outermost, which sets the fields and follows the response. */
  begin(): boolean {
    if (this.#begun) return false
    this.#begun = true
    // Tests may pass a request to a handler again.
    if (this.outgoing instanceof Ending && this.outgoing.ended) this.outgoing = new Ending(this.#request)
    return true
  }

  end(): void {
    this.#begun = false
  }
}

/** The parts of a throttled request that differ between the frameworks of `Request` and `Response`. */
export interface Framework<Args extends readonly unknown[], Name extends string> {
  /** Arguments of functions in options. */
  readonly args: Args
  /** Called with the decision before the handler starts. */
  decided?(decision: Decision<Name>): void
  /** Called with the response before functions in options that get it. */
  responded?(response: Response): void
  /** Sets status and headers of a rejection before the `handler` of the options runs. */
  reject(rejection: Rejection<Name>): void
  /** Makes the error of `throwOnReject`. */
  error(rejection: Rejection<Name>): Error
  /** Makes the standard response to a rejection. */
  answer(rejection: Rejection<Name>): Response
}

const FLAG =
  'Clients that leave are not reported, so their slots, reservations and places in a queue stay in use. Add "compatibility_flags": ["enable_request_signal"] to wrangler.jsonc.'

/** Throttles a request: checks it, calls `next` if it is allowed, and returns the response with the limit fields. */
export async function throttled<Req, Args extends readonly unknown[], Name extends string>(
  guard: Guard<Req, Args, Name>,
  request: Req,
  exchange: Exchange,
  framework: Framework<Args, Name>,
  next: () => Response | Promise<Response>,
): Promise<Response> {
  const outermost = exchange.begin()
  const { outgoing } = exchange
  // An outer limit has warned then.
  const waited = isUnreported(outgoing)
  try {
    const checking = checked(guard, request, exchange)
    const decision = checking instanceof Promise ? await checking : checking
    if (decision === null) return withoutClient(outgoing)
    if (decision === undefined) return finish(guard, exchange, await next(), outermost)
    framework.decided?.(decision)
    if (!decision.allowed) return finish(guard, exchange, await rejected(guard, request, decision, exchange, framework), outermost)
    guard.watch(decision, outgoing as ServerResponse, framework.args)
    const ended = handlerStarts(outgoing as ServerResponse)
    if (ended === null) return withoutClient(outgoing)
    if (!waited && isUnreported(outgoing)) guard.side.warn(new WeirError('WEIR_INVALID_OPTION', FLAG), FLAG)
    try {
      const running = next()
      // Workers end a handler whose client leaves. Its slot would stay in use.
      if (ended !== undefined && running instanceof Promise) keepRequest(running)
      const response = await running
      framework.responded?.(response)
      return finish(guard, exchange, response, outermost)
    } catch (error) {
      framework.responded?.(error instanceof Response ? error : new Response(null, { status: 500 }))
      throw error
    } finally {
      ended?.()
    }
  } catch (error) {
    // Some frameworks answer with a thrown response.
    if (error instanceof Response) throw finish(guard, exchange, error, outermost)
    if (outermost && outgoing instanceof Ending) outgoing.end(true)
    throw error
  } finally {
    if (outermost) exchange.end()
  }
}

/** Whether something waits for a client of which the platform does not report that it leaves. */
function isUnreported(outgoing: ServerResponse | Ending): boolean {
  return outgoing instanceof Ending && outgoing.listens && !reportsClients()
}

/** Decides a request, and notes the decision and the limit fields. */
export function checked<Req, Args extends readonly unknown[], Name extends string>(
  guard: Guard<Req, Args, Name>,
  request: Req,
  { decisions, fields, outgoing }: Exchange,
): Checked<Name> | Promise<Checked<Name>> {
  const note = (decision: Checked<Name>) => {
    if (!decision) return decision
    decisions.set(guard.throttler, decision)
    guard.writeHeaders(decision, fields, addField)
    return decision
  }
  const decision = guard.check(request, decisions.get(guard.throttler), outgoing as ServerResponse)
  return decision instanceof Promise ? decision.then(note) : note(decision)
}

/** A decision. Undefined if the request is skipped, null if its client has left. */
type Checked<Name extends string> = Decision<Name> | undefined | null

/** Makes the response to a rejected request. Throws only with `throwOnReject`. */
export async function rejected<Req, Args extends readonly unknown[], Name extends string>(
  guard: Guard<Req, Args, Name>,
  request: Req,
  decision: Decision<Name>,
  { outgoing }: Exchange,
  framework: Framework<Args, Name>,
): Promise<Response> {
  const rejection = await guard.reject(request, decision)
  if (guard.throws) throw framework.error(rejection)
  framework.reject(rejection)
  let response: unknown
  const became = await guard.handle(rejection, framework.args, outgoing as ServerResponse, (value) => {
    response = value
  })
  if (became === 'left' || outgoing.headersSent) return withoutClient(outgoing)
  if (became === 'answered') {
    if (response instanceof Response) return response
    if (!outgoing.destroyed) guard.report('handler', 'Option "handler"', 'it must return a Response')
  }
  return framework.answer(rejection)
}

/** Sets the fields on the response. The outermost throttler of a request does it for all. */
function finish(
  guard: Pick<Guard<never, never>, 'report'>,
  { fields, outgoing }: Exchange,
  response: Response,
  outermost: boolean,
): Response {
  if (!outermost) return response
  const finished = withFields(guard, response, fields)
  if (!(outgoing instanceof Ending) || !outgoing.awaited) return finished
  try {
    return outgoing.follow(finished)
  } catch (error) {
    guard.report('settle', 'The end of a response could not be waited for', error)
    outgoing.end(true)
    return finished
  }
}

/** Returns the response with the fields, or without them if it can't have any. */
export function withFields(guard: Pick<Guard<never, never>, 'report'>, response: Response, fields: Fields): Response {
  try {
    return isSwitch(response) ? response : copyWith(fields, response)
  } catch (error) {
    guard.report('headers', 'The rate limit fields could not be set', error)
    return response
  }
}

/** The headers of a response from `fetch` are immutable, so it is copied. */
function copyWith(fields: Fields, response: Response): Response {
  let target = response
  for (const name in fields) {
    try {
      target.headers.set(name, fields[name] as string)
    } catch (error) {
      // No response is made of Response.error() or of a string. The constructor of `@hono/node-server` would give them status 200.
      if (!(target.status >= 200)) throw error
      target = new Response(target.body, target)
      target.headers.set(name, fields[name] as string)
    }
  }
  return target
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addField: SetHeader<Fields> = (fields, name, value) => {
  const before = isListField(name, value) ? fields[name] : undefined
  fields[name] = before === undefined ? value : `${before}, ${value}`
}

/** The response for a client that has disconnected, or that already has a response. */
export function withoutClient(outgoing: ServerResponse | Ending): Response {
  // A platform without a response of Node.js drops it. 499 is the status in nginx's logs.
  if (outgoing instanceof Ending) return new Response(null, { status: 499 })
  const response = new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  // `@hono/node-server` sends its own kind of Response without reading this header unless the body was accessed before.
  void response.body
  return response
}
