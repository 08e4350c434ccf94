import { STATUS_CODES } from 'node:http'
import type { Decision } from '../../decide/decision.ts'
import { WeirError } from '../../report/errors.ts'
import { retryAfterSeconds } from './headers.ts'
import { noTime } from './problem-details.ts'

/** The answer to a rejected request. Adapters have set the headers already when a `handler` gets it. */
export interface Rejection<Name extends string = string> {
  readonly decision: Decision<Name>
  /** 429 unless `statusCode` says otherwise; 403 for a request on the deny list. */
  readonly status: number
  /** `Retry-After` (seconds; absent when the request never fits, where nobody knows, and with `sendRetryAfter: false`), `Cache-Control`, and the `RateLimit` fields. */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of `body`. */
  readonly type: string
  /** The body for a client that accepts `type`. */
  readonly body: string
}

/**
 * A rejection as an HTTP/1.1 message, for a request to upgrade (a WebSocket) that came with a bare socket:
 * `socket.end(upgradeRejection(rejection))`. The connection ends with it.
 *
 * @example
 * server.on('upgrade', async (request, socket, head) => {
 *   socket.on('error', () => socket.destroy()) // a client that is gone already must not end the process
 *   const decision = await guard.check(request)
 *   if (decision?.allowed === false) return socket.end(upgradeRejection(await guard.reject(request, decision)))
 *   sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, request))
 * })
 */
export function upgradeRejection({ status, headers, type, body }: Rejection): string {
  const fields = { ...headers, 'Content-Type': type, 'Content-Length': String(Buffer.byteLength(body)), Connection: 'close' }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Rejected'}\r\n${lines.join('')}\r\n${body}`
}

/**
 * A rejected request, as `throwOnReject: true` hands it to the framework's error handler, which then owns the answer.
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
  /** Which policy rejected, why, and for how long. */
  readonly decision: Decision<Name>

  constructor(rejection: Rejection<Name>) {
    super('WEIR_THROTTLED', rejection.decision.policy === undefined ? 'Forbidden' : messageOf(rejection))
    this.status = rejection.status
    this.statusCode = rejection.status
    this.headers = rejection.headers
    this.decision = rejection.decision
  }
}

function messageOf({ decision }: Rejection): string {
  const wait = retryAfterSeconds(decision)
  if (!wait) return noTime(decision, wait)
  return `Too many requests. Try again in ${wait} s.`
}
