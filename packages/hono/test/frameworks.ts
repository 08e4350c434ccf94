import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'

type Listener = (fetch: Hono['fetch']) => (request: IncomingMessage, response: ServerResponse) => unknown

/** A supported version of Hono and a version of the server that it runs on. */
export interface Framework {
  readonly name: string
  readonly Hono: typeof Hono
  readonly listener: Listener
}

const older = (await import('hono48' as string)) as { Hono: typeof Hono }
const olderServer = (await import('node-server1' as string)) as { getRequestListener: Listener }

// For these tests the types of both versions are the same.
export const NEWEST: Framework = { name: 'Hono 4', Hono, listener: getRequestListener as Listener }
export const OLDEST: Framework = {
  name: 'Hono 4.8 on @hono/node-server 1',
  Hono: older.Hono,
  listener: olderServer.getRequestListener,
}

/** The parts of the adapter contract that Hono can't keep, and the reasons. */
export const without = {
  'counts all that has no route together': 'a middleware behind the throttler may answer what no handler does',
}

/** The parts that the oldest version can't keep either. */
export const withoutOldest = { ...without, 'counts HEAD as GET': '@hono/node-server 1.19 answers HEAD with 500, without Weir too' }

/** Serves an application on a free port of the loopback address. */
export async function serve(
  { listener }: Framework,
  app: Hono,
  { before, http2 = false }: { before?: (request: IncomingMessage) => void; http2?: boolean } = {},
): Promise<Server> {
  const handle = listener(app.fetch)
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    before?.(request)
    void handle(request, response)
  }
  const server = http2 ? (createHttp2Server(answer as never) as unknown as Server) : createServer(answer)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return server
}
