import { createServer, type RequestListener, type Server } from 'node:http'
import type { Decision } from '@weir/core'
import { ARRIVED_HEADER } from './messages.ts'
import { arrived } from './timing.ts'

/** Milliseconds, longer than any pause in the traffic. If one side closes a connection while the other uses it, a request fails. */
export const KEEP_ALIVE = 600_000

/** A server that stamps every request with its arrival before the framework handles it. */
export function stampingServer(handler: RequestListener): Server {
  const server = createServer((request, response) => {
    arrived(request)
    response.setHeader(ARRIVED_HEADER, String(Date.now()))
    handler(request, response)
  })
  server.keepAliveTimeout = KEEP_ALIVE
  return server
}

/** The body of a rejection. The demo's clients count rejections without the store by it. */
export function reasonOf(_request: unknown, { reason }: Decision): string {
  return reason
}
