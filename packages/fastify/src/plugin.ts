import { type Decision, type Throttler, WeirError } from '@weir/core'
import {
  type HandlerDecision,
  isListField,
  LIMIT_FIELDS,
  type Rejection,
  type SetHeader,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/adapter'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import { reportingEnd } from './handler-end.ts'
import type { FastifyArgs, NamedThrottleOptions, ThrottleFunction, ThrottleHook, ThrottleOptions } from './options.ts'
import { fastifyReader, type RouteConfig } from './reader.ts'
import { checkHook, type RouteGuard, RouteLimits } from './route-limits.ts'

// Asynchronous, because Fastify catches errors only of asynchronous plugins. An error in a synchronous one is an uncaught exception.
const plugin = async (app: FastifyInstance, options: ThrottleOptions): Promise<void> => {
  if (typeof app.addHook !== 'function') {
    const message =
      'weir is a plugin, but was called with a request. Write app.register(weir, { key: "ip", limit: 100, interval: "1m" }) instead of using it as a hook.'
    throw new WeirError('WEIR_INVALID_OPTION', message)
  }
  const { hook, input } = withoutFastify(options)
  const reader = fastifyReader()
  const routes = new RouteLimits(input, hook, reader)

  const go = (
    guard: RouteGuard,
    request: FastifyRequest,
    reply: FastifyReply,
    decision: Decision | undefined | null,
    next: HookHandlerDoneFunction,
  ) => {
    if (decision === undefined) return next()
    // The client has left, so the request needs no response.
    if (decision === null) return
    const set = request.throttle === null ? setHeader : addHeader
    request.throttle = decision as HandlerDecision
    if (!decision.allowed) return reject(guard, request, reply, decision, set, next)
    guard.writeHeaders(decision, reply, set)
    guard.watch(decision, reply.raw, [request, reply])
    next()
  }

  const reject = (
    guard: RouteGuard,
    request: FastifyRequest,
    reply: FastifyReply,
    decision: Decision,
    set: SetHeader<FastifyReply>,
    next: HookHandlerDoneFunction,
  ) => {
    const rejection = guard.reject(request, decision)
    if (!(rejection instanceof Promise)) return answer(guard, request, reply, rejection, set, next)
    rejection.then((made) => begun(reply) || answer(guard, request, reply, made, set, next)).catch(next)
  }

  const answer = (
    guard: RouteGuard,
    request: FastifyRequest,
    reply: FastifyReply,
    rejection: Rejection,
    set: SetHeader<FastifyReply>,
    next: HookHandlerDoneFunction,
  ) => {
    for (const name in rejection.headers) set(reply, name, rejection.headers[name] as string)
    if (guard.throws) return next(new ThrottledError(rejection))
    reply.code(rejection.status)
    const handled = guard.handle(rejection, [request, reply], reply.raw)
    if (!(handled instanceof Promise)) return handled === 'failed' ? answerStandard(reply, rejection) : undefined
    handled
      .then((became) => {
        if (became === 'failed') answerStandard(reply, rejection)
        // A route's handler may return its response, but this handler must send it. Without this check, an unsent reply stays open.
        if (became === 'answered')
          guard.expect(
            () => begun(reply),
            () => answerStandard(reply, rejection),
          )
      })
      .catch(next)
  }

  /** Makes a hook that throttles with the guard of a request's route. */
  const throttleBy =
    (guardOf: (config: RouteConfig) => RouteGuard | false) =>
    (request: FastifyRequest, reply: FastifyReply, next: HookHandlerDoneFunction) => {
      const guard = guardOf(reader.config(request))
      if (guard === false) return next()
      const decision = guard.check(request, request.throttle, reply.raw)
      reader.release()
      if (!(decision instanceof Promise)) return go(guard, request, reply, decision, next)
      // Other code, such as a timeout of the application, may have sent a response in the meantime.
      decision.then((decided) => reply.sent || go(guard, request, reply, decided, next)).catch(next)
    }

  const throttle = (options?: NamedThrottleOptions): ThrottleFunction => {
    const guardOf = routes.place(options)
    return Object.assign(throttleBy(guardOf), {
      check: async (request: FastifyRequest) => guardOf().check(request),
      peek: (request: FastifyRequest) => guardOf().peek(request),
    })
  }

  const peek = async (request: FastifyRequest): Promise<Decision | undefined> => {
    const config = request.routeOptions.config as RouteConfig
    // Only `app.throttle()` limits requests without a route.
    const guard = config.url !== undefined && routes.atRoute(config)
    return guard ? guard.peek(request) : undefined
  }

  const atRoute = throttleBy((config) => routes.atRoute(config))

  if (!app.hasRequestDecorator('throttle')) app.decorateRequest('throttle', null)
  if (!Object.hasOwn(app, 'throttler')) app.decorate('throttler', routes.throttler as Throttler<never, FastifyRequest>)
  if (!Object.hasOwn(app, 'throttle')) app.decorate('throttle', Object.assign(throttle, { peek }))
  app.addHook('onRoute', (options) => {
    options.handler = reportingEnd(options.handler)
    // The hooks have different types, but all accept the arguments that are used here.
    const own = routes.declare(options) as 'onRequest' | undefined
    if (own !== undefined) options[own] = [options[own] ?? [], atRoute].flat()
  })
  app.addHook(
    hook as 'onRequest',
    throttleBy((config) => routes.atInstance(config)),
  )
  app.addHook('onReady', (ready) => {
    routes.start()
    ready()
  })
  if (routes.owned) app.addHook('onClose', () => routes.throttler.close())
}

/** Whether a response was sent or begun. */
function begun(reply: FastifyReply): boolean {
  return reply.sent || reply.raw.headersSent
}

/** Writes the standard answer, and removes headers that a failed handler may have set for its own body. */
function answerStandard(reply: FastifyReply, { status, type, body }: Rejection): void {
  if (begun(reply)) return
  reply.removeHeader('content-encoding').removeHeader('transfer-encoding').removeHeader('content-length')
  reply.code(status).header('content-type', type).send(body)
}

/** The plugin's options without the options of Fastify's `register`. */
function withoutFastify(options: ThrottleOptions): { hook: ThrottleHook; input: ThrottleInput<FastifyRequest, FastifyArgs> } {
  const { hook = 'onRequest', ...input } = options as ThrottleOptions & Record<string, unknown>
  // Options of `register` itself.
  for (const own of ['prefix', 'logLevel', 'logSerializers']) delete input[own]
  // Fastify passes a copy of the options, and a copy of a throttler is empty.
  if (Object.keys(input).length === 0) {
    throw new WeirError(
      'WEIR_MISSING_OPTION',
      'The plugin got no options, or a throttler instead of options. Use app.register(weir, { key: "ip", limit: 100, interval: "1m" }), or app.register(weir, { throttler }).',
    )
  }
  checkHook(hook)
  return { hook, input: input as ThrottleInput<FastifyRequest, FastifyArgs> }
}

/** Names in lower case, as Fastify writes them. Precomputed names save Node.js a string look-up for each one. */
const LOWER: Readonly<Record<string, string>> = Object.fromEntries(LIMIT_FIELDS.map((name) => [name, name.toLowerCase()]))

const setHeader: SetHeader<FastifyReply> = (reply, name, value) => {
  reply.header(LOWER[name] ?? name, value)
}

/** Appends to the value of an earlier throttler if the field is a list. */
const addHeader: SetHeader<FastifyReply> = (reply, name, value) => {
  const before = isListField(name, value) ? reply.getHeader(name) : undefined
  reply.header(name, before === undefined ? value : `${String(before)}, ${value}`)
}

/**
 * Throttles requests in Fastify 4 and 5, for all routes of its instance and of that instance's children, even routes that were declared
 * earlier. Requests without a route are limited only with `app.setNotFoundHandler({ preHandler: app.throttle() }, ...)`.
 *
 * `request.throttle` contains the decision. `app.throttler` is the throttler, which closes with the application unless you passed it as an
 * option. A route's `config.throttle` replaces the limits, or removes them with `false`. `app.throttle` makes hooks with further limits.
 *
 * @throws WeirError (from `register` or `ready`) for options that can't be used: its `code` and message name the option
 *
 * @example
 * await app.register(weir, { limit: 300, interval: '1m', key: 'ip', store: redisStore(new Redis()) })
 */
export const weir: FastifyPluginAsync<ThrottleOptions> = fastifyPlugin(plugin, { fastify: '>=4', name: '@weir/fastify' })
