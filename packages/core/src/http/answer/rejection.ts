import { STATUS_CODES } from 'node:http'
import type { Decision } from '../../decide/decision.ts'
import { WeirError } from '../../report/errors.ts'
import { retryAfterSeconds } from './headers.ts'
import { noTime } from './problem-details.ts'

/** The response to a rejected request. When a `handler` gets it, the adapter has already set its status and headers. */
export interface Rejection<Name extends string = string> {
  readonly decision: Decision<Name>
  /** Status of the response: the option `statusCode`, by default 429. 403 for a client on the deny list. */
  readonly status: number
  /**
   * Headers of the response: `Retry-After` in whole seconds, `Cache-Control`, and the fields of the option `headers`. `Retry-After` is
   * absent if the request never fits, if the time is unknown (`concurrency()`), and with `sendRetryAfter: false`. A client on the deny list
   * gets only `Cache-Control`.
   */
  readonly headers: Readonly<Record<string, string>>
  /** Media type of `body`. */
  readonly type: string
  /** Body of the response, in the media type `type`. */
  readonly body: string
}

/**
 * Writes a rejection as an HTTP/1.1 message, for an upgrade request (a WebSocket) that came with a bare socket:
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
 * Reports a rejected request to the framework's error handler (`throwOnReject: true`), which then writes the response. Error handlers of
 * Express, Fastify and Koa use its `statusCode` or `status` and its `headers`.
 */
export class ThrottledError<Name extends string = string> extends WeirError {
  override readonly name: string = 'ThrottledError'
  /** The same as `statusCode`. Koa reads this one. */
  readonly status: number
  /** Status of the response: the option `statusCode`, by default 429. 403 for a client on the deny list. */
  readonly statusCode: number
  /**
   * Headers of the response, as in `Rejection`: `Retry-After` in whole seconds, `Cache-Control`, and the fields of the option `headers`.
   */
  readonly headers: Readonly<Record<string, string>>
  /** Allows error handlers to show the message to the client (http-errors' convention). */
  readonly expose: boolean = true
  /** The decision with the policy that rejected, its reason and the wait. */
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
