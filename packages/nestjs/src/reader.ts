import type { ExecutionContext } from '@nestjs/common'
import { anyReadings, headerValue, type RequestReader, trustsAnyone } from '@weir/core/adapter'
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
  // The readings of both Express and Fastify.
  readings: anyReadings,
  route: (context: ExecutionContext) => {
    const transport = transportOf(context)
    if (transport?.kind === 'graphql') return transport.field
    if (transport?.kind === 'ws') return `ws ${String(transport.message)}`
    return patternOf(context)
  },
  pattern: patternOf,
  samples: samplesOf,
  ip: (context: ExecutionContext) => {
    const request = requestOf(context)
    // A subscription of GraphQL has the raw upgrade request, which has no `ip`.
    return 'ip' in request ? request.ip : socketOf(request)?.remoteAddress
  },
  socket: (context: ExecutionContext) => socketOf(requestOf(context)),
  forgeable: (context: ExecutionContext) => {
    const request = requestOf(context)
    if (!trustsAnyone(request)) return undefined
    const setting = request.raw === undefined ? '"trust proxy"' : '"trustProxy"'
    return `${setting} trusts every address, so the first address of X-Forwarded-For is used, even if a client wrote it. Set it to the addresses of your proxies`
  },
  howToTrust: (context: ExecutionContext, withoutAddress: boolean) => {
    const request = requestOf(context)
    if (transportOf(context)?.kind === 'ws' || !('ip' in request))
      return 'WebSockets have no setting for proxies: use a function, key: address((context) => ...).'
    if (request.raw === undefined) {
      return withoutAddress
        ? 'Call app.set("trust proxy", 1): no list of addresses contains a Unix socket.'
        : 'Call app.set("trust proxy", "10.0.0.0/8") with the address or network of your proxy.'
    }
    return withoutAddress
      ? 'Use new FastifyAdapter({ trustProxy: (address, hop) => hop === 0 }): no list of addresses contains a Unix socket.'
      : 'Use new FastifyAdapter({ trustProxy: "10.0.0.0/8" }) with the address or network of your proxy. Since Fastify 5.12.1 a number trusts none.'
  },
  header: (context: ExecutionContext, name: string) => headerValue(requestOf(context).headers?.[name]),
})

function requestOf(context: ExecutionContext): RequestLike {
  return transportOf(context)?.request ?? NOTHING
}

function socketOf({ raw, socket }: RequestLike): RequestLike['socket'] {
  return socket ?? raw?.socket
}

/** The pattern of the route. A guard runs after routing, so it is known. */
function patternOf(context: ExecutionContext): string | undefined {
  const transport = transportOf(context)
  if (transport?.kind !== 'http') return undefined
  const { route, routeOptions } = transport.request
  const pattern = routeOptions?.url ?? route?.path
  return pattern === undefined || pattern === null ? undefined : String(pattern)
}
