import type { Decision, Throttler } from '@weir/core'
import type { PlaceOptions, PolicyName, ThrottleInput } from '@weir/core/adapter'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

/** The arguments of a Fastify handler, as options such as `handler` receive them. */
export type FastifyArgs = readonly [request: FastifyRequest, reply: FastifyReply]

/** Hooks in which requests can be throttled. */
export type ThrottleHook = 'onRequest' | 'preValidation' | 'preHandler'

/** Options of the plugin. */
export type ThrottleOptions<Name extends string = string> = ThrottleInput<FastifyRequest, FastifyArgs, Name> & {
  /**
   * Chooses the hook that throttles requests.
   * - `'onRequest'`: before all hooks that are added later.
   * - `'preValidation'`: after all other hooks of that name, even those of routes.
   * - `'preHandler'`: after all other hooks of that name, even those of routes. Use it for keys that need authentication.
   *
   * @default 'onRequest'
   */
  readonly hook?: ThrottleHook
}

type RouteOptions = PlaceOptions<FastifyRequest, FastifyArgs> & {
  /**
   * Chooses the hook that throttles requests of this route.
   * - `'onRequest'`: before all hooks that are added later.
   * - `'preValidation'`: after all other hooks of that name.
   * - `'preHandler'`: after all other hooks of that name. Use it for keys that need authentication.
   *
   * @default the plugin's `hook`
   */
  readonly hook?: ThrottleHook
}

/**
 * At least one option that there is. A route's `config` is of the type of whatever stands in it, so that the compiler finds no
 * property of an object there to be one too many; but it finds that one is missing.
 */
type Given<Options> = { readonly [Option in KeysOf<Options>]: { readonly [_ in Option]: unknown } }[KeysOf<Options>]
type KeysOf<Options> = Options extends unknown ? keyof Options : never

/**
 * The value of `config.throttle` of a route. Its own limits replace those of the plugin. Without `policies`, options of the plugin's single
 * policy (but not its `name` and `match`) apply where the route sets none.
 */
export type RouteThrottleOptions = RouteOptions & Given<RouteOptions>

/** The argument of `app.throttle`: as `config.throttle` of a route, but with the name of the policy, because no route provides one. */
export type NamedThrottleOptions = PlaceOptions<FastifyRequest, FastifyArgs> &
  (
    | {
        /** Names the policy, because no route does: 1 to 64 printable ASCII characters. */
        readonly name: string
      }
    | {
        /** Lists the rules, each with a `name`. */
        readonly policies: unknown
      }
    | {
        /** Uses a throttler made by `createThrottler` for this place alone. */
        readonly throttler: unknown
      }
  )

/** Throttles requests where it stands: a hook `onRequest`, `preValidation` or `preHandler`, of a route, an instance, or a 404 handler. */
export interface ThrottleFunction {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  /**
   * Counts a request and tells what was decided, without an answer or header fields: for limits that a handler asks for itself. Each
   * call counts. Slots of `concurrency()` are held until `app.throttler.release(decision)`.
   *
   * @returns undefined when the request passes uncounted; the promise is never rejected
   */
  check(request: FastifyRequest): Promise<Decision | undefined>
  /**
   * Resolves with the decision that these limits would make about a request now, without counting it; undefined if the request would
   * pass uncounted. The promise never rejects.
   */
  peek(request: FastifyRequest): Promise<Decision | undefined>
}

/** `app.throttle`. */
export interface ThrottleFactory {
  /**
   * Throttles in a place of your own: `{ preHandler: app.throttle({ name: 'login', limit: 5, interval: '1m' }) }` limits a route
   * beside the plugin's limits, and `app.setNotFoundHandler({ preHandler: app.throttle() }, ...)` limits what has no route.
   *
   * @param options limits of its own. Default: those of the plugin
   * @throws WeirError as `createThrottler`; `WEIR_MISSING_OPTION` for limits without a name; `WEIR_INVALID_OPTION` for limits that are
   * given in a handler, once requests are served
   */
  (options?: NamedThrottleOptions): ThrottleFunction
  /**
   * Resolves with the decision that the limits of a request's route would make about it now, without counting it; undefined if the
   * request would pass uncounted, or has no route.
   *
   * @example
   * const { allowed, remaining } = (await app.throttle.peek(request)) ?? { allowed: true, remaining: Infinity }
   */
  peek(request: FastifyRequest): Promise<Decision | undefined>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Weir's decision about this request; null if it passed uncounted. */
    throttle: Decision<PolicyName> | null
  }
  interface FastifyInstance {
    /** The throttler of the plugin. */
    throttler: Throttler<PolicyName, FastifyRequest>
    /** Throttles in a place of your own, and shows what the limits of a route would decide. */
    throttle: ThrottleFactory
  }
  interface FastifyContextConfig {
    /** Limits of this route in place of the plugin's, or `false` for none. */
    throttle?: RouteThrottleOptions | false
  }
}
