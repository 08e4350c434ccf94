import { createServer, type RequestListener, type Server } from 'node:http'
import type { Decision } from '@weir/core'
import { ARRIVED_HEADER } from './messages.ts'
import { arrived } from './timing.ts'

/** Longer than any pause in the traffic: a connection closed by one side while the other uses it is a failed request. */
export const KEEP_ALIVE = 600_000

/** A server that stamps every request with its arrival before its framework sees it. */
export function stampingServer(handler: RequestListener): Server {
  const server = createServer((request, response) => {
    arrived(request)
    response.setHeader(ARRIVED_HEADER, String(Date.now()))
    handler(request, response)
  })
  server.keepAliveTimeout = KEEP_ALIVE
  return server
}

/** The body of a rejection: the demo's clients count rejections without the store by it. */
export function reasonOf(_request: unknown, { reason }: Decision): string {
  return reason
}
