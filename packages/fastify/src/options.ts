import type { Decision, PolicyOptions, Throttler, ThrottlerOptions } from '@weir/core'
import type { AdapterOptions, PolicyName, ThrottleInput } from '@weir/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** What Fastify calls a handler with, as far as options such as `handler` see it. */
export type FastifyArgs = readonly [request: FastifyRequest, reply: FastifyReply]

/** Hooks in which requests can be throttled. */
export type ThrottleHook = 'onRequest' | 'preValidation' | 'preHandler'

/** What the plugin takes. */
export type ThrottleOptions<Name extends string = string> = ThrottleInput<FastifyRequest, FastifyArgs, Name> & {
  /** When requests are throttled. Default `'onRequest'`; `'preHandler'` for keys that need authentication. */
  readonly hook?: ThrottleHook
}

/** Limits by plan: `limits: { free: 60, pro: 600 }` and the plan of a request, in place of `limit`. */
interface PlannedLimits {
  readonly limits: Readonly<Record<string, number>>
  readonly plan: (request: FastifyRequest) => string
}

/**
 * What a route takes as `config.throttle`. Its own limits replace those of the plugin. Without `policies`, options of the
 * plugin's single policy (but not its `name` and `match`) hold where the route gives none.
 */
export type RouteThrottleOptions =
  | (AdapterOptions<FastifyRequest, FastifyArgs> & Partial<PolicyOptions<FastifyRequest> & PlannedLimits>)
  | (AdapterOptions<FastifyRequest, FastifyArgs> & Pick<ThrottlerOptions<FastifyRequest>, 'policies'>)
  | (AdapterOptions<FastifyRequest, FastifyArgs> & { readonly throttler: Throttler<string, FastifyRequest> })

declare module 'fastify' {
  interface FastifyRequest {
    /** What Weir decided about this request; null when it passed uncounted. */
    throttle: Decision<PolicyName> | null
  }
  interface FastifyInstance {
    /** The throttler of the plugin. */
    throttler: Throttler<PolicyName, FastifyRequest>
  }
  interface FastifyContextConfig {
    /** Limits of this route in place of the plugin's, or `false` for none. */
    throttle?: RouteThrottleOptions | false
  }
}
