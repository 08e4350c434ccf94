import { type Decision, type Throttler, WeirError } from '@weir/core'
import {
  isListField,
  LIMIT_FIELDS,
  type PolicyName,
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

// Asynchronous, since Fastify catches what such a plugin throws; of others it is an uncaught exception.
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
    // The client has left: nobody is left to answer.
    if (decision === null) return
    const set = request.throttle === null ? setHeader : addHeader
    request.throttle = decision as Decision<PolicyName>
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
        // Handlers of routes may return what they answer; this one may not, and to wait for it would take for ever.
        if (became === 'answered')
          guard.expect(
            () => begun(reply),
            () => answerStandard(reply, rejection),
          )
      })
      .catch(next)
  }

  /** A hook that throttles by the guard of a request's route. */
  const throttleBy =
    (guardOf: (config: RouteConfig) => RouteGuard | false) =>
    (request: FastifyRequest, reply: FastifyReply, next: HookHandlerDoneFunction) => {
      const guard = guardOf(reader.config(request))
      if (guard === false) return next()
      const decision = guard.check(request, request.throttle, reply.raw)
      reader.release()
      if (!(decision instanceof Promise)) return go(guard, request, reply, decision, next)
      // Somebody else may have answered meanwhile, e.g. when its time was over.
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
    // Requests without a route are limited only where `app.throttle()` is used.
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

/** Whether an answer has been given, or begun. */
function begun(reply: FastifyReply): boolean {
  return reply.sent || reply.raw.headersSent
}

/** Writes the standard answer, whatever a handler has prepared before it failed. */
function answerStandard(reply: FastifyReply, { status, type, body }: Rejection): void {
  if (begun(reply)) return
  reply.removeHeader('content-encoding').removeHeader('transfer-encoding').removeHeader('content-length')
  reply.code(status).header('content-type', type).send(body)
}

/** The plugin's options without those of Fastify's own `register`. */
function withoutFastify(options: ThrottleOptions): { hook: ThrottleHook; input: ThrottleInput<FastifyRequest, FastifyArgs> } {
  const { hook = 'onRequest', ...input } = options as ThrottleOptions & Record<string, unknown>
  // Fastify's own: where and how the plugin is registered.
  for (const own of ['prefix', 'logLevel', 'logSerializers']) delete input[own]
  // Fastify passes a copy of its options on, and a copy of a throttler is empty.
  if (Object.keys(input).length === 0) {
    throw new WeirError(
      'WEIR_MISSING_OPTION',
      'The plugin got no options, or a throttler instead of options. Use app.register(weir, { key: "ip", limit: 100, interval: "1m" }), or app.register(weir, { throttler }).',
    )
  }
  checkHook(hook)
  return { hook, input: input as ThrottleInput<FastifyRequest, FastifyArgs> }
}

/** Fastify writes names in lower case. To hand them over so saves Node.js to look each one up among its strings. */
const LOWER: Readonly<Record<string, string>> = Object.fromEntries(LIMIT_FIELDS.map((name) => [name, name.toLowerCase()]))

const setHeader: SetHeader<FastifyReply> = (reply, name, value) => {
  reply.header(LOWER[name] ?? name, value)
}

/** Adds to what another throttler said before, where the field is a list. */
const addHeader: SetHeader<FastifyReply> = (reply, name, value) => {
  const before = isListField(name, value) ? reply.getHeader(name) : undefined
  reply.header(name, before === undefined ? value : `${String(before)}, ${value}`)
}

/**
 * Throttles the requests of Fastify 4 and 5: all routes of the instance that it is registered on and of its children, whether
 * they were declared before or after. What has no route is limited where it is asked for:
 * `app.setNotFoundHandler({ preHandler: app.throttle() }, ...)`.
 *
 * `request.throttle` holds the decision and `app.throttler` the throttler, which is closed with the application unless it was
 * given. A route's `config.throttle` replaces the limits, or turns them off with `false`; `app.throttle` adds limits where it stands.
 *
 * @throws WeirError (from `register` or `ready`) for options that can't be used: its `code` and message name the option
 *
 * @example
 * await app.register(weir, { limit: 300, interval: '1m', key: 'ip', store: redisStore(new Redis()) })
 */
export const weir: FastifyPluginAsync<ThrottleOptions> = fastifyPlugin(plugin, { fastify: '>=4', name: '@weir/fastify' })
