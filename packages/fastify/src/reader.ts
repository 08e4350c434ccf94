import { headerValue, type RequestReader, trustsAnyone } from '@weir/core/adapter'
import type { FastifyRequest } from 'fastify'
import type { RouteThrottleOptions } from './options.ts'
import { samplesOf } from './route-samples.ts'

/** The route name of requests without a route. They share one key, because otherwise every guessed path would make a new one. */
const NOT_FOUND = '(not found)'

/** The key in a route's `config` for its declared pattern. Fastify derives further routes from it, which have another `url`. */
export const PATTERN: unique symbol = Symbol('weir.pattern')

/** Fastify's data about a route, as requests see it. Each route has one such object. */
export interface RouteConfig {
  readonly url?: string
  readonly method?: string | readonly string[]
  readonly throttle?: RouteThrottleOptions | false
  readonly [PATTERN]?: string
}

/** Reads requests of Fastify 4 and 5. */
export interface FastifyReader extends RequestReader<FastifyRequest> {
  /** Returns the configuration of the request's route, and keeps it for `route` until `release`. */
  config(request: FastifyRequest): RouteConfig
  /** Forgets the last request. */
  release(): void
}

/** Makes a reader. It keeps the last route, because Fastify builds `routeOptions` again at each access. */
export function fastifyReader(): FastifyReader {
  let last: RouteConfig | undefined
  let reading: FastifyRequest | undefined
  // A request that waited for a promise is no longer the last one.
  const known = (request: FastifyRequest) => (request === reading ? last : (request.routeOptions.config as RouteConfig))
  return {
    options: ['hook'],
    config: (request) => {
      reading = request
      last = request.routeOptions.config as RouteConfig
      return last
    },
    release: () => {
      reading = undefined
    },
    method: (request) => request.method,
    path: (request) => request.raw.url ?? '/',
    route: (request) => {
      const config = known(request)
      return config?.[PATTERN] ?? config?.url ?? NOT_FOUND
    },
    pattern: (request) => known(request)?.url,
    samples: samplesOf,
    ip: (request) => request.ip,
    socket: (request) => request.raw.socket,
    forgeable: (request) =>
      trustsAnyone(request)
        ? '"trustProxy" trusts every address, so the first address of X-Forwarded-For is used, even if a client wrote it. Set it to the addresses of your proxies'
        : undefined,
    howToTrust: (_request, withoutAddress) =>
      withoutAddress
        ? 'Set trustProxy: (address, hop) => hop === 0: no list of addresses contains a Unix socket, and since Fastify 5.12.1 a number trusts none.'
        : 'Set trustProxy: "10.0.0.0/8" with the address or network of your proxy. Since Fastify 5.12.1 a number trusts none.',
    header: (request, name) => headerValue(request.headers[name]),
  }
}
