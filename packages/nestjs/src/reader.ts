import type { ExecutionContext } from '@nestjs/common'
import { anyReadings, headerValue, type RequestReader } from '@weir/core/http'
import { samplesOf } from './route-samples.ts'
import { type RequestLike, transportOf } from './transport.ts'

const NOTHING: RequestLike = Object.freeze({})

/** Reads requests of NestJS 11 and 12, over Express or Fastify, fields of GraphQL, and messages of WebSockets. */
export const nestReader: RequestReader<ExecutionContext> = Object.freeze({
  method: (context: ExecutionContext) => requestOf(context).method ?? 'GET',
  path: (context: ExecutionContext) => {
    const { originalUrl, raw, url } = requestOf(context)
    return originalUrl ?? raw?.url ?? url ?? '/'
  },
  // Of Express and Fastify alike.
  readings: anyReadings,
  route: (context: ExecutionContext) => {
    const transport = transportOf(context)
    if (transport?.kind === 'graphql') return transport.field
    if (transport?.kind === 'ws') return `ws ${String(transport.message)}`
    return patternOf(context)
  },
  pattern: patternOf,
  samples: samplesOf,
  ip: (context: ExecutionContext) => requestOf(context).ip,
  socket: (context: ExecutionContext) => {
    const { raw, socket } = requestOf(context)
    return socket ?? raw?.socket
  },
  forgeable: (context: ExecutionContext) =>
    requestOf(context).app?.get?.('trust proxy') === true
      ? '"trust proxy" is true, so the first address of X-Forwarded-For is believed, whoever wrote it. Set it to the number of your proxies, or to their addresses'
      : undefined,
  header: (context: ExecutionContext, name: string) => headerValue(requestOf(context).headers?.[name]),
})

function requestOf(context: ExecutionContext): RequestLike {
  return transportOf(context)?.request ?? NOTHING
}

/** The pattern of the route: a guard runs when it is known. */
function patternOf(context: ExecutionContext): string | undefined {
  const transport = transportOf(context)
  if (transport?.kind !== 'http') return undefined
  const { route, routeOptions } = transport.request
  const pattern = routeOptions?.url ?? route?.path
  return pattern === undefined || pattern === null ? undefined : String(pattern)
}
