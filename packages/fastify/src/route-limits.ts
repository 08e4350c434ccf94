import { createHash } from 'node:crypto'
import { createThrottler, type PolicyOptions, type Throttler, WeirError } from '@weir/core'
import { Guard, type ThrottleInput } from '@weir/core/http'
import type { FastifyRequest } from 'fastify'
import type { FastifyArgs, RouteThrottleOptions } from './options.ts'
import type { FastifyReader, RouteConfig } from './reader.ts'

/** Guards the requests of one route, or of all without options of their own. */
export type RouteGuard = Guard<FastifyRequest, FastifyArgs>

/** An adapter's own options, and those that its throttler is made from. */
type SplitOptions = ReturnType<typeof Guard.split<FastifyRequest, FastifyArgs, string>>

/** A policy's name goes into a header field and into keys of the store. */
const LONGEST_NAME = 64

/** The options of one route, completed by those of the plugin. */
interface RouteLimit {
  readonly split: SplitOptions
  guard: RouteGuard | undefined
}

/**
 * The limits that routes have of their own: further policies of the plugin's throttler, each for one route only. They are added
 * when the application is ready. A route that was declared before the plugin was loaded is known only when its first
 * request comes, and is added then.
 */
export class RouteLimits {
  /** Guards the routes without options of their own. */
  readonly #general: RouteGuard
  readonly #plugin: SplitOptions
  readonly #reader: FastifyReader
  readonly #limits = new Map<RouteThrottleOptions, Map<string, RouteLimit>>()
  readonly #policies = new Map<string, PolicyOptions<FastifyRequest>>()
  readonly #guards = new WeakMap<RouteConfig, RouteGuard | false>()
  #version = 0

  constructor(input: ThrottleInput<FastifyRequest, FastifyArgs>, reader: FastifyReader) {
    this.#plugin = Guard.split<FastifyRequest, FastifyArgs, string>(input)
    this.#reader = reader
    this.#general = new Guard(input, reader, (policy) => !this.#policies.has(policy))
  }

  get throttler(): Throttler<string, FastifyRequest> {
    return this.#general.throttler
  }

  /** Whether the throttler was made here, and so has to be closed. */
  get owned(): boolean {
    return this.#general.owned
  }

  /**
   * Takes note of a route's options.
   *
   * @throws WeirError as `createThrottler`
   */
  add(options: RouteThrottleOptions, methods: string | readonly string[], url: string): RouteLimit {
    const name = nameOf(methods, url)
    const known = this.#limits.get(options)?.get(name)
    if (known !== undefined) return known
    const split = this.#complete(options, name)
    const limit: RouteLimit = { split, guard: undefined }
    if (split.throttler === undefined) {
      // Made only to be checked; it connects to nothing before its start.
      const general = this.throttler.rules.filter(({ name }) => !this.#policies.has(name ?? ''))
      createThrottler<string, FastifyRequest>({ policies: [...general, ...this.#policies.values(), ...split.make.policies] })
      for (const policy of split.make.policies) this.#policies.set(policy.name as string, policy)
    }
    const limits = this.#limits.get(options) ?? new Map<string, RouteLimit>()
    this.#limits.set(options, limits.set(name, limit))
    return limit
  }

  /** Connects, and makes the limits of the routes that are known. */
  start(): void {
    for (const limits of this.#limits.values()) for (const limit of limits.values()) this.#make(limit)
    this.throttler.start()
  }

  /** The guard of a route; false when it is not throttled. */
  guard(config: RouteConfig): RouteGuard | false {
    let guard = this.#guards.get(config)
    if (guard === undefined) this.#guards.set(config, (guard = this.#find(config)))
    if (this.#version !== this.throttler.version) this.#adopt()
    return guard
  }

  #find(config: RouteConfig): RouteGuard | false {
    const options = config.throttle
    if (options === false) return false
    if (options === undefined || options === null) return this.#general
    try {
      return this.#make(this.add(options, config.method ?? '', String(config.url)))
    } catch (error) {
      // Too late to refuse the start: the plugin's own limits hold.
      this.#general.report(String(config.url), `Option "config.throttle" of route ${String(config.url)}`, error)
      return this.#general
    }
  }

  #make(limit: RouteLimit): RouteGuard {
    const { own, throttler, make } = limit.split
    if (limit.guard !== undefined) return limit.guard
    if (throttler === undefined) this.#adopt()
    const names = new Set(make.policies.map(({ name }) => name))
    limit.guard = new Guard(
      { ...own, throttler: throttler ?? this.throttler },
      this.#reader,
      throttler === undefined ? (policy) => names.has(policy) : undefined,
    )
    return limit.guard
  }

  /** Adds the routes' policies to the throttler; again when an `update` by the application left them out. */
  #adopt(): void {
    const present = new Set(this.throttler.policies.map(({ name }) => name))
    const missing = [...this.#policies.values()].filter(({ name }) => !present.has(name as string))
    if (missing.length > 0) this.throttler.update([...this.throttler.rules, ...missing])
    this.#version = this.throttler.version
  }

  /** A route's options with those of the plugin where it gives none. */
  #complete(options: RouteThrottleOptions, name: string): SplitOptions {
    const { own, make, throttler } = this.#plugin
    const levels = 'policies' in options || 'throttler' in options
    const split = Guard.split<FastifyRequest, FastifyArgs, string>(
      (levels ? options : { name, ...options }) as ThrottleInput<FastifyRequest, FastifyArgs>,
    )
    if (split.throttler !== undefined) return { ...split, own: { ...own, ...split.own } }
    if (throttler !== undefined) {
      throw new WeirError(
        'WEIR_MISSING_OPTION',
        `Route ${name} has limits of its own, but the plugin was given a throttler: give the route a "throttler" too, or give the plugin "policies" and a "store".`,
      )
    }
    const base = levels || make.policies.length > 1 ? undefined : make.policies[0]
    const policies = split.make.policies.map((policy, place) => ({
      ...inherited(base),
      ...policy,
      name: policy.name ?? `${name}#${place}`,
    }))
    return { own: { ...own, ...split.own }, throttler: undefined, make: { ...make, policies } }
  }
}

function inherited(policy: PolicyOptions<FastifyRequest> | undefined): Partial<PolicyOptions<FastifyRequest>> {
  if (policy === undefined) return {}
  const { name: _name, match: _match, ...rest } = policy
  return rest
}

/** A route's name as a policy. All nodes must come to the same, so it is made from the route alone. */
function nameOf(methods: string | readonly string[], url: string): string {
  // Fastify adds a HEAD route to each GET route; both share one limit.
  const list = (typeof methods === 'string' ? [methods] : [...methods]).map((method) => (method === 'HEAD' ? 'GET' : method))
  const name = `${[...new Set(list)].sort().join(',')} ${encodeURI(url)}`
  if (name.length <= LONGEST_NAME) return name
  const hash = createHash('sha256').update(name).digest('base64url').slice(0, 16)
  return `${name.slice(0, LONGEST_NAME - 17)}~${hash}`
}
