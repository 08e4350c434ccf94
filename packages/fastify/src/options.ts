import type { Decision, Throttler } from '@weir/core'
import type { HandlerDecision, PlaceOptions, PolicyName, ThrottleInput } from '@weir/core/adapter'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'

/** The arguments of a Fastify handler, as options such as `handler` receive them. */
export type FastifyArgs = readonly [request: FastifyRequest, reply: FastifyReply]

/** Hooks in which requests can be throttled. */
export type ThrottleHook = 'onRequest' | 'preValidation' | 'preHandler'

/** Options of the plugin. */
export type ThrottleOptions<Name extends string = string> = ThrottleInput<FastifyRequest, FastifyArgs, Name> & {
  /**
   * Chooses the hook: before all hooks that are added later, or after all other hooks of that name. Keys that need authentication need
   * `'preHandler'`.
   *
   * - `'onRequest'`: before all hooks that are added later.
   * - `'preValidation'`: after all other hooks of that name, even those of routes.
   * - `'preHandler'`: after all other hooks of that name, even those of routes.
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
 * Requires at least one known option. The compiler infers the type of a route's `config` from its value, so it reports no unknown
 * property there. It does report that all known ones are missing.
 */
type Given<Options> = { readonly [Option in KeysOf<Options>]: { readonly [_ in Option]: unknown } }[KeysOf<Options>]
type KeysOf<Options> = Options extends unknown ? keyof Options : never

/**
 * The value of `config.throttle` of a route. Its own limits replace the limits of the plugin. Without `policies`, options that the route
 * does not set come from the plugin's single policy if they fit, except `name` and `match`.
 */
export type RouteThrottleOptions = RouteOptions & Given<RouteOptions>

/** The argument of `app.throttle`: the options of a route's `config.throttle`, plus the policy's name, because no route provides one. */
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

/** A hook that throttles requests. Use it as `onRequest`, `preValidation` or `preHandler` of a route, an instance or a 404 handler. */
export interface ThrottleFunction {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  /**
   * Counts a request and resolves with the decision, without a response or header fields, so that a handler can check a limit itself. Each
   * call counts. Slots of `concurrency()` stay in use until `app.throttler.release(decision)`.
   *
   * @returns the decision, or undefined if the request passes uncounted. The promise never rejects
   */
  check(request: FastifyRequest): Promise<Decision | undefined>
  /**
   * Resolves with the decision that these limits would make about a request now, without counting it, or with undefined if the request
   * would pass uncounted. The promise never rejects.
   */
  peek(request: FastifyRequest): Promise<Decision | undefined>
}

/** The type of `app.throttle`. */
export interface ThrottleFactory {
  /**
   * Makes a hook that throttles: `{ preHandler: app.throttle({ name: 'login', limit: 5, interval: '1m' }) }` limits a route in addition to
   * the plugin's limits, and `app.setNotFoundHandler({ preHandler: app.throttle() }, ...)` limits requests without a route.
   *
   * @param options limits of this hook. Default: the limits of the plugin
   * @throws WeirError like `createThrottler`, `WEIR_MISSING_OPTION` for limits without a name, and `WEIR_INVALID_OPTION` for limits that
   * are passed after the first request, e.g. in a handler
   */
  (options?: NamedThrottleOptions): ThrottleFunction
  /**
   * Resolves with the decision that the limits of a request's route would make about it now, without counting it, or with undefined if
   * the request would pass uncounted or has no route.
   *
   * @example
   * const { allowed, remaining } = (await app.throttle.peek(request)) ?? { allowed: true, remaining: Infinity }
   */
  peek(request: FastifyRequest): Promise<Decision | undefined>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Weir's decision about this request, or null if it passed uncounted. */
    throttle: HandlerDecision | null
  }
  interface FastifyInstance {
    /** The throttler of the plugin. */
    throttler: Throttler<PolicyName, FastifyRequest>
    /** Makes hooks that throttle, and peeks at the decision of a route's limits. */
    throttle: ThrottleFactory
  }
  interface FastifyContextConfig {
    /** Replaces the plugin's limits for this route. `false` removes them. */
    throttle?: RouteThrottleOptions | false
  }
}
