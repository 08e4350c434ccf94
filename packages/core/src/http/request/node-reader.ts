import type { IncomingMessage } from 'node:http'
import type { RequestReader } from './reader.ts'

/**
 * Reads requests of plain `node:http` (and the HTTP/2 compatibility API). The address is the socket's: forwarded headers are
 * trusted only where a framework knows its proxies.
 */
export const nodeReader: RequestReader<IncomingMessage> = Object.freeze({
  method: (request: IncomingMessage) => request.method ?? 'GET',
  path: (request: IncomingMessage) => request.url ?? '/',
  route: () => undefined,
  ip: (request: IncomingMessage) => request.socket?.remoteAddress,
  header: (request: IncomingMessage, name: string) => headerValue(request.headers[name]),
})

/** A header of Node.js as one string. */
export function headerValue(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value.join(', ')
}
