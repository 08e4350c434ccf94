import type { IncomingMessage } from 'node:http'
import { headerValue } from './header-value.ts'
import type { RequestReader } from './reader.ts'
import { anyReadings } from './readings.ts'

/**
 * Reads requests of plain `node:http`, and of the HTTP/2 compatibility API. It uses the address of the socket. Forwarded headers are not
 * read, because without a framework there is no setting for trusted proxies.
 */
export const nodeReader: RequestReader<IncomingMessage> = Object.freeze({
  method: (request: IncomingMessage) => request.method ?? 'GET',
  path: (request: IncomingMessage) => request.url ?? '/',
  readings: anyReadings,
  route: () => undefined,
  ip: (request: IncomingMessage) => request.socket?.remoteAddress,
  socket: (request: IncomingMessage) => request.socket,
  howToTrust: () =>
    'node:http has no setting for proxies: count by a header that your proxy sets itself, e.g. key: address(header("x-real-ip")).',
  header: (request: IncomingMessage, name: string) => headerValue(request.headers[name]),
})
