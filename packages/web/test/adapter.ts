import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { getRequestListener } from '@hono/node-server'
import { type AdapterUnderTest, handlerUnderTest } from '@weir/testing'
import { forwardedAddress, type ThrottleOptions, throttle } from '../src/index.ts'

/** Arguments of a handler beside the request. */
type Rest = readonly unknown[]

type Handler = (request: Request, ...rest: Rest) => Response | Promise<Response>

/** The requests and responses of Node.js by the requests of the platform. */
const nodes = new WeakMap<Request, { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse }>()

/** Platforms by the arguments that they pass beside the request. All of them are served by Node.js here. */
const PLATFORMS = {
  /** Passes the request and response of Node.js. */
  node: (request: Request) => [nodes.get(request)],
  /** Passes a server that finds addresses. */
  bun: () => [{ requestIP: (request: Request) => ({ address: nodes.get(request)?.incoming.socket.remoteAddress }) }],
}

/** The contract's application: a handler on `@hono/node-server`, wrapped by each limit in turn. */
export function webAdapter(platform: keyof typeof PLATFORMS): AdapterUnderTest<Request> {
  return {
    routes: 'path',
    handlerEnd: true,
    http2: true,
    proxies: true,
    async start(inputs, { work, http2, proxy }) {
      const limits = inputs.map((input) =>
        throttle((proxy === undefined ? input : { ...input, address: forwardedAddress(1) }) as ThrottleOptions),
      )
      // They would start with the first request, and warn of their options then.
      for (const { throttler } of limits) throttler.start()
      const atEnd = (request: Request, run: () => void) => void nodes.get(request)?.outgoing.on('finish', run)
      const limited = limits.reduceRight<Handler>((inner, limit) => limit(inner), handlerUnderTest(limits, { work, atEnd }))
      const handle = (request: Request, env: { incoming: IncomingMessage; outgoing: ServerResponse }) => {
        nodes.set(request, env)
        return limited(request, ...PLATFORMS[platform](request))
      }
      const listener = getRequestListener(handle as never, { errorHandler })
      const server = http2 ? (createHttp2Server(listener as never) as unknown as Server) : createServer(listener)
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      return {
        server,
        throttlers: limits.map(({ throttler }) => throttler),
        close: () => {
          server.closeAllConnections?.()
          return new Promise((resolve) => void server.close(() => resolve()))
        },
      }
    },
    header: (request, name) => request.headers.get(name) ?? undefined,
    answering: (text) => (_request: Request, response: Response) => new Response(text, response),
    begun: ([request], text, last = false) => {
      const response = nodes.get(request as Request)?.outgoing as ServerResponse
      if (last) response.end(text)
      else response.write(text)
    },
    status: ([, response]) => (response as Response).status,
  }
}

/** The parts of the contract that a handler can't keep, and the reasons. */
export const without = {
  'keeps the fields on an answer to an error': 'an error passes to the platform, which makes the response',
}

const unread = '@hono/node-server aborts only signals that were read before the client left'
const noNode = 'the platform has no response of Node.js to write to'

/** The parts that can't be tried if a handler gets only the address from `@hono/node-server`. */
export const withoutNode = {
  ...without,
  'holds none of the requests that a client has sent at once, behind one that is not answered yet, when it goes away': unread,
  'starts no handler, and keeps no slot, for a client that leaves before its request is decided': unread,
  'survives clients that are gone before handler has answered': unread,
  'says how to trust a proxy on a Unix socket, whose clients share a key until then': 'the platform reports no connection',
  'leaves an answer alone that a handler has begun, and breaks it off when the handler fails': noNode,
}

/** Answers as the error handlers of frameworks do. */
function errorHandler(error: unknown): Response {
  // The server throws this for targets that are no URL.
  const otherwise = (error as Error).name === 'RequestError' ? 400 : 500
  const { status = otherwise, headers = {} } = error as { status?: number; headers?: Record<string, string> }
  return new Response(error instanceof Error ? error.message : 'error', { status, headers })
}
