import { createHash } from 'node:crypto'
import { type Throttler, WeirError } from '@weir/core'
import {
  type Guard,
  invalidOption,
  missingOption,
  type PlaceLimit,
  PlaceLimits,
  type PlaceOptions,
  show,
  type ThrottleInput,
} from '@weir/core/adapter'
import type { FastifyRequest, RouteOptions } from 'fastify'
import type { FastifyArgs, NamedThrottleOptions, ThrottleHook } from './options.ts'
import { type FastifyReader, PATTERN, type RouteConfig } from './reader.ts'

/** Guards the requests of one route, or of all routes without options of their own. */
export type RouteGuard = Guard<FastifyRequest, FastifyArgs>

type Options = PlaceOptions<FastifyRequest, FastifyArgs>
type Limit = PlaceLimit<FastifyRequest, FastifyArgs>

/** The longest name of a policy in characters. It is sent in a header field and stored in keys. */
const LONGEST_NAME = 64

const HOOKS: readonly ThrottleHook[] = ['onRequest', 'preValidation', 'preHandler']

/** A route as it was declared. */
interface Declared extends Limited {
  readonly name: string
  /** Its pattern. A HEAD route that Fastify added has the pattern of its GET route. */
  readonly url: string
  /** Its options. For another path of the same route, Fastify writes another URL into them before it adds the HEAD route. */
  readonly options: RouteOptions
  /** The GET route to which Fastify added this HEAD route. */
  readonly get: Declared | undefined
  /** The value of its `config.throttle`. */
  readonly given: unknown
}

/** The limits that `config.throttle` of a route sets. */
interface Limited {
  /** Its own limits, undefined for the limits of the plugin, or false for none. */
  limit: Limit | false | undefined
  readonly hook: ThrottleHook
}

/** The mark of a limited route in its `config`. */
interface Mark extends Pick<Declared, 'limit' | 'given'> {
  /** Whether the route has the hook itself. */
  readonly own: boolean
}

/**
 * The routes' own limits. They are added when the application is ready. The plugin sees a route that was declared before it was loaded only
 * at the route's first request, and adds its limits then.
 */
export class RouteLimits {
  /** Marks the `config` of routes that this plugin has seen. Fastify makes a copy of the `config` for each route. */
  readonly #mark = Symbol('weir')
  readonly #places: PlaceLimits<FastifyRequest, FastifyArgs>
  readonly #hook: ThrottleHook
  readonly #declared: Declared[] = []
  /** GET routes by their handler, because the HEAD route that Fastify adds to one has the same handler. */
  readonly #gets = new WeakMap<object, Declared>()
  /** Limits that other `onRoute` hooks set after a route was declared, by the value of `config.throttle`, then by method and URL. */
  readonly #late = new WeakMap<object, Map<string, Limit>>()
  readonly #guards = new WeakMap<RouteConfig, RouteGuard | false>()
  readonly #early = new WeakMap<RouteConfig, RouteGuard | false>()
  /** Whether the first request has arrived. */
  #serves = false

  constructor(input: ThrottleInput<FastifyRequest, FastifyArgs>, hook: ThrottleHook, reader: FastifyReader) {
    this.#places = new PlaceLimits(input, reader, {
      place: 'Route',
      whole: 'the plugin',
      none: 'A route without limits has throttle: false in its config.',
    })
    this.#hook = hook
  }

  get throttler(): Throttler<string, FastifyRequest> {
    return this.#places.throttler
  }

  /** Whether the plugin made the throttler, and so must close it. */
  get owned(): boolean {
    return this.#places.general.owned
  }

  /**
   * Registers a route that is being declared.
   *
   * @returns the hook that the route itself needs, or undefined if the hook of the whole instance throttles it
   * @throws WeirError like `createThrottler`, with the name of the route
   */
  declare(options: RouteOptions): ThrottleHook | undefined {
    const { config, handler, method, url } = options
    const known = method === 'HEAD' ? this.#gets.get(handler) : undefined
    const get = known?.options.url === url ? known : undefined
    const pattern = get?.url ?? url
    const name = nameOf({ ...options, method: get === undefined ? method : 'GET', url: pattern })
    const { throttle } = options as { readonly throttle?: unknown }
    if (throttle !== undefined) throw misplaced(name)
    const given: unknown = config?.throttle
    const declared: Declared = { name, url: pattern, options, get, given, ...this.#read(given, name, get) }
    this.#declared.push(declared)
    if (method === 'GET') this.#gets.set(handler, declared)
    // A hook of the route runs after all other hooks of that name. For `onRequest`, the instance's hook rejects requests earlier.
    const own = declared.limit !== false && (declared.hook !== 'onRequest' || this.#hook !== 'onRequest')
    const mark: Mark = { limit: declared.limit, given, own }
    options.config = { ...config, [this.#mark]: mark, [PATTERN]: pattern } as NonNullable<RouteOptions['config']>
    return own ? declared.hook : undefined
  }

  /**
   * Starts the throttler, and reads limits that other `onRoute` hooks set after the routes were declared.
   *
   * @throws WeirError like `declare`, for these limits
   */
  start(): void {
    for (const before of this.#declared.splice(0)) {
      const { options, url } = before
      const given = options.config?.throttle
      if (given === before.given) continue
      const { limit, hook } = this.#read(given, before.name, before.get)
      if (hook !== before.hook) throw tooLate(before.name)
      before.limit = limit
      if (limit === undefined || limit === false) continue
      const limits = this.#late.get(given as object) ?? new Map<string, Limit>()
      this.#late.set(given as object, limits.set(placeOf(options), limit).set(placeOf({ ...options, url }), limit))
    }
    this.#places.start()
  }

  /**
   * Adds limits that belong to no route.
   *
   * @returns a function that returns their guard
   * @throws WeirError like `createThrottler`, for limits without a name, and after the first request, because each call would add a policy
   */
  place(options: NamedThrottleOptions | undefined): () => RouteGuard {
    const { general } = this.#places
    if (options === undefined) return () => general
    if (!isObject(options)) throw invalidOption('throttle', options, 'app.throttle() with an object such as { name: "login", limit: 5 }')
    if (!('name' in options || 'policies' in options || 'throttler' in options)) {
      throw missingOption('name', 'app.throttle() needs it for its policy. Add it, e.g. { name: "login", limit: 5 }.')
    }
    if (this.#serves) {
      throw new WeirError(
        'WEIR_INVALID_OPTION',
        'app.throttle() was called with limits while requests are served, most likely in a handler. Call it once, before the application starts, and keep its result: const login = app.throttle({ name: "login", limit: 5 }), and login.check(request) in the handler.',
      )
    }
    const limit = this.#places.add(options, String('name' in options ? options.name : 'app.throttle()'))
    return () => this.#guardOf(limit)
  }

  /** The guard of requests at the hook of the whole instance, or false if they pass it. */
  atInstance(config: RouteConfig): RouteGuard | false {
    this.#serves = true
    let guard = this.#early.get(config)
    if (guard === undefined) {
      // Requests without a route cost nothing, because they would use up the quota of the application's clients.
      const elsewhere = config.url === undefined || this.#marked(config)?.own === true
      this.#early.set(config, (guard = elsewhere ? false : this.atRoute(config)))
    }
    this.#places.follow()
    return guard
  }

  /** The guard of a route, or false if it is not throttled. */
  atRoute(config: RouteConfig): RouteGuard | false {
    let guard = this.#guards.get(config)
    if (guard === undefined) this.#guards.set(config, (guard = this.#find(config)))
    this.#places.follow()
    return guard
  }

  #guardOf(limit: Limit): RouteGuard {
    const guard = this.#places.guard(limit)
    this.#places.follow()
    return guard
  }

  #marked(config: RouteConfig): Mark | undefined {
    return (config as { readonly [mark: symbol]: Mark | undefined })[this.#mark]
  }

  /** Reads the value of a route's `config.throttle`. */
  #read(given: unknown, name: string, get?: Declared): Limited {
    if (given === undefined || given === false) return { limit: given, hook: this.#hook }
    const named = `Option "config.throttle" of route ${name}`
    if (!isObject(given))
      throw new WeirError('WEIR_INVALID_OPTION', `${named} is ${show(given)}. Use false, or an object such as { limit: 20 }.`)
    const { hook = this.#hook, ...options } = given as Options & { readonly hook?: ThrottleHook }
    try {
      checkHook(hook)
      return { limit: get?.limit || this.#places.add(options as Options, name), hook }
    } catch (error) {
      if (error instanceof WeirError) error.message = `${named}: ${error.message}`
      throw error
    }
  }

  #find(config: RouteConfig): RouteGuard | false {
    const { general } = this.#places
    const given = config.throttle
    if (given === false) return false
    if (given === undefined) return general
    try {
      const limit = this.#known(config) ?? this.#readEarly(config)
      return limit ? this.#guardOf(limit) : general
    } catch (error) {
      // The application has started already, so the error is reported and the plugin's own limits apply.
      general.report(String(config.url), 'A route uses the limits of the plugin', error)
      return general
    }
  }

  #known(config: RouteConfig): Limit | false | undefined {
    const marked = this.#marked(config)
    if (marked?.given === config.throttle) return marked?.limit
    return this.#late.get(config.throttle as object)?.get(placeOf(config))
  }

  /** Reads `config.throttle` of a route that was declared before the plugin was loaded. */
  #readEarly(config: RouteConfig): Limit | false | undefined {
    const { method, url = '', throttle } = config
    // Fastify may have added a HEAD route to a GET route. That can't be seen here, so the HEAD route gets the name of the GET route.
    const name = nameOf({ method: method === 'HEAD' ? 'GET' : method, url })
    const { limit, hook } = this.#read(throttle, name)
    if (hook !== this.#hook) throw tooLate(name)
    return limit
  }
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
export function checkHook(hook: ThrottleHook): void {
  if (HOOKS.includes(hook)) return
  throw invalidOption('hook', hook, HOOKS.map((one) => JSON.stringify(one)).join(' or '))
}

function tooLate(name: string): WeirError {
  return new WeirError(
    'WEIR_INVALID_OPTION',
    `Option "config.throttle.hook" of route ${name} came too late. Await the registration of the plugin before you declare the route, and register it after plugins whose onRoute hooks set limits.`,
  )
}

function misplaced(name: string): WeirError {
  return new WeirError(
    'WEIR_INVALID_OPTION',
    `Option "throttle" of route ${name} is beside "config", where Fastify ignores it. Write { config: { throttle: { limit: 20 } } } or { config: { throttle: false } }.`,
  )
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function placeOf({ method, url }: { readonly method?: unknown; readonly url?: string }): string {
  return `${String(method)} ${url}`
}

/** The name of a route's policy. All processes must compute the same name, so it depends on the route alone. */
function nameOf({ method, url, constraints }: Pick<RouteOptions, 'constraints' | 'url'> & { readonly method?: unknown }): string {
  const list = [method ?? []].flat() as string[]
  const methods = list.map((one) => (one === 'HEAD' && list.length > 1 ? 'GET' : one))
  const narrowed = Object.entries(constraints ?? {}).map(([by, value]) => ` ${encodeURI(`${by}=${String(value)}`)}`)
  const name = `${[...new Set(methods)].sort().join(',')} ${encodeURI(url)}${narrowed.sort().join('')}`
  if (name.length <= LONGEST_NAME) return name
  const hash = createHash('sha256').update(name).digest('base64url').slice(0, 16)
  return `${name.slice(0, LONGEST_NAME - 17)}~${hash}`
}
