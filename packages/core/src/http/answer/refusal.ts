import { STATUS_CODES } from 'node:http'
import type { Decision } from '../../decide/decision.ts'
import { WeirError } from '../../report/errors.ts'
import { retryAfterSeconds } from './headers.ts'
import { noTime } from './problem-details.ts'

/** The answer to a refused request. Adapters have set the headers already when a `handler` gets it. */
export interface Refusal<Name extends string = string> {
  readonly decision: Decision<Name>
  /** 429 unless `statusCode` says otherwise; 403 for a request on the deny list. */
  readonly status: number
  /** `Retry-After` (seconds; absent when the request never fits, where nobody knows, and with `retryAfter: false`), `Cache-Control`, and the `RateLimit` fields. */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of `body`. */
  readonly type: string
  /** What a client that accepts `type` is told. */
  readonly body: string
}

/**
 * A refusal as an HTTP/1.1 message, for a request to upgrade (a WebSocket) that came with a bare socket:
 * `socket.end(upgradeRefusal(refusal))`. The connection ends with it.
 *
 * @example
 * server.on('upgrade', async (request, socket, head) => {
 *   socket.on('error', () => socket.destroy()) // a client that is gone already must not end the process
 *   const decision = await guard.check(request)
 *   if (decision?.allowed === false) return socket.end(upgradeRefusal(await guard.refuse(request, decision)))
 *   sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
 * })
 */
export function upgradeRefusal({ status, headers, type, body }: Refusal): string {
  const fields = { ...headers, 'Content-Type': type, 'Content-Length': String(Buffer.byteLength(body)), Connection: 'close' }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\n${lines.join('')}\r\n${body}`
}

/**
 * A refused request, as `onRefused: 'throw'` hands it to the framework's error handler, which then owns the answer.
 * Error handlers of Express, Fastify and Koa use its `statusCode` or `status` and its `headers`.
 */
export class ThrottledError<Name extends string = string> extends WeirError {
  override readonly name: string = 'ThrottledError'
  /** As `statusCode`; Koa reads this one. */
  readonly status: number
  /** 429, or what the option `statusCode` says; 403 for a request on the deny list. */
  readonly statusCode: number
  /** `Retry-After` (seconds), `Cache-Control`, and the `RateLimit` fields. */
  readonly headers: Readonly<Record<string, string>>
  /** The message may be shown to the client (http-errors' convention). */
  readonly expose: boolean = true
  /** Which policy refused, why, and for how long. */
  readonly decision: Decision<Name>

  constructor(refusal: Refusal<Name>) {
    super('WEIR_THROTTLED', refusal.decision.policy === undefined ? 'Forbidden' : messageOf(refusal))
    this.status = refusal.status
    this.statusCode = refusal.status
    this.headers = refusal.headers
    this.decision = refusal.decision
  }
}

function messageOf({ decision }: Refusal): string {
  const wait = retryAfterSeconds(decision)
  if (!wait) return noTime(decision, wait)
  return `Too many requests. Try again in ${wait} s.`
}
