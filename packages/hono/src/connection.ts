import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'hono'

/** What `@hono/node-server` leaves of the connection in `c.env`; other servers, and `app.request()` in tests, leave nothing. */
export interface Connection {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
}

const NONE: Connection = Object.freeze({})

/** The request and response of Node.js behind a context. */
export function connectionOf(c: Context): Connection {
  const env: unknown = c.env
  if (typeof env !== 'object' || env === null) return NONE
  // An application that starts by `serve({ fetch: (request, env) => app.fetch(request, { server: env }) })` keeps them there.
  const { server } = env as { server?: unknown }
  return typeof server === 'object' && server !== null && 'incoming' in server ? (server as Connection) : (env as Connection)
}
