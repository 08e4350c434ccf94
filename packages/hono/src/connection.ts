import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'hono'

/**
 * The parts of the connection that `@hono/node-server` sets in `c.env`. Other servers, and `app.request()` in tests, set none of them.
 */
export interface Connection {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
}

const NONE: Connection = Object.freeze({})

/** The request and response of Node.js behind a context. */
export function connectionOf(c: Context): Connection {
  const env: unknown = c.env
  if (typeof env !== 'object' || env === null) return NONE
  // Applications that start with `serve({ fetch: (request, env) => app.fetch(request, { server: env }) })` keep them in `server`.
  const { server } = env as { server?: unknown }
  return typeof server === 'object' && server !== null && 'incoming' in server ? (server as Connection) : (env as Connection)
}
