import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { ExecutionContext } from '@nestjs/common'

/** The parts of an Express or Fastify request that this package reads. */
export interface RequestLike {
  readonly method?: string
  readonly url?: string
  readonly originalUrl?: string
  readonly raw?: IncomingMessage
  readonly socket?: IncomingMessage['socket']
  readonly ip?: string
  readonly headers?: IncomingHttpHeaders
  /** The matched route in Express. */
  readonly route?: { readonly path?: unknown }
  /** The matched route in Fastify. */
  readonly routeOptions?: { readonly url?: string }
}

/** A response of Express, or a reply of Fastify, which has the response of Node.js as `raw`. */
export interface ResponseLike {
  readonly raw?: ServerResponse
  header(name: string, value: string): unknown
}

/** The parts of a `ws` or Socket.IO client that this package reads. */
interface ClientLike {
  readonly handshake?: { readonly address?: string; readonly headers?: IncomingHttpHeaders }
  readonly request?: IncomingMessage
  readonly _socket?: IncomingMessage['socket']
}

/** The request of a context and its transport. Microservices have none, because they are not limited. */
export type Transport =
  | { readonly kind: 'http'; readonly request: RequestLike; readonly response: ResponseLike }
  | { readonly kind: 'graphql'; readonly field: string; readonly request: RequestLike }
  | { readonly kind: 'ws'; readonly message: string; readonly request: RequestLike }

/** Returns the transport of a guard's context, or undefined if its requests are not limited. */
export function transportOf(context: ExecutionContext): Transport | undefined {
  switch (context.getType<string>()) {
    case 'http': {
      const http = context.switchToHttp()
      return { kind: 'http', request: http.getRequest(), response: http.getResponse() }
    }
    case 'graphql': {
      const [, , graph, info] = context.getArgs<[unknown, unknown, GraphLike | undefined, InfoLike | undefined]>()
      const request = graph?.req ?? graph?.request ?? graph?.reply?.request ?? graph?.extra?.request ?? {}
      return { kind: 'graphql', field: `${String(info?.parentType?.name)}.${String(info?.fieldName)}`, request }
    }
    case 'ws': {
      const socket = context.switchToWs()
      const client = socket.getClient<ClientLike | undefined>()
      const connection = client?.request?.socket ?? client?._socket
      const ip = client?.handshake?.address ?? connection?.remoteAddress
      const headers = client?.handshake?.headers ?? {}
      const request = { headers, ...(ip !== undefined && { ip }), ...(connection !== undefined && { socket: connection }) }
      return { kind: 'ws', message: socket.getPattern(), request }
    }
    default:
      return undefined
  }
}

/** The parts of a GraphQL context that the drivers of Apollo and Mercurius, and of subscriptions, set. */
interface GraphLike {
  readonly req?: RequestLike
  readonly request?: RequestLike
  readonly reply?: { readonly request?: RequestLike }
  readonly extra?: { readonly request?: RequestLike }
}

interface InfoLike {
  readonly parentType?: { readonly name?: string }
  readonly fieldName?: string
}

/** The response of Node.js. */
export function rawOf(response: ResponseLike): ServerResponse {
  return response.raw ?? (response as unknown as ServerResponse)
}
