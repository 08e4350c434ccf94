import { headerValue, type RequestReader } from '@weir/core/http'
import type { FastifyRequest } from 'fastify'
import type { RouteThrottleOptions } from './options.ts'
import { samplesOf } from './route-samples.ts'

/** The route of requests that Fastify has no route for: they share one key, or every guess would make a new one. */
const NOT_FOUND = '(not found)'

/** What Fastify keeps of a route for its requests; one object for each route. */
export interface RouteConfig {
  readonly url?: string
  readonly method?: string | readonly string[]
  readonly throttle?: RouteThrottleOptions | false | null
}

/** Reads requests of Fastify 4 and 5. */
export interface FastifyReader extends RequestReader<FastifyRequest> {
  /** The configuration of the request's route, which `route` reads next. */
  config(request: FastifyRequest): RouteConfig
}

/** Makes a reader. It remembers the last route: Fastify puts `routeOptions` together anew each time it is asked. */
export function fastifyReader(): FastifyReader {
  let last: RouteConfig | undefined
  return {
    config: (request) => {
      last = request.routeOptions.config as RouteConfig
      return last
    },
    method: (request) => request.method,
    path: (request) => request.raw.url ?? '/',
    route: () => last?.url ?? NOT_FOUND,
    pattern: () => last?.url,
    samples: samplesOf,
    ip: (request) => request.ip,
    header: (request, name) => headerValue(request.headers[name]),
  }
}
