import type { PathPolicies } from '../../decide/request-options.ts'
import { bounded, copied } from '../../keys/key-text.ts'
import { Recent } from '../../keys/recent.ts'
import { UNKNOWN_ADDRESS } from './address.ts'
import { isPlain } from './plain-path.ts'
import type { ProxyWatch } from './proxy-watch.ts'
import type { RequestReader } from './reader.ts'
import type { Readings } from './readings.ts'
import { countedMethod, foldPath, normalizePath, withoutDots } from './route-key.ts'

/**
 * Remembered paths and routes, in each of two generations. Longer paths, and further methods of a path, are computed each time. A client
 * that invents paths uses at most about 2 KB for each of 4,000, and as much for each of 4,000 routes if it can invent routes: 16 MB for a
 * middleware.
 */
const REMEMBERED = 2000
const LONGEST_REMEMBERED = 256
const PLACES_REMEMBERED = 4

/**
 * The route of targets that can't be read, or can be read as several routes. They share one key, because otherwise each would get a new
 * one.
 */
const UNCLEAR = '(unclear)'

/** The facts about one path and method, if it led to one route. */
interface Place {
  readonly method: string
  /** The pattern of the route. Undefined if it is not known. */
  readonly pattern: string | undefined
  /** The route key. */
  readonly key: string
  /** The policies with a path pattern that matches, and the policies without one, in their order. */
  readonly policies: readonly number[]
  /**
   * The same path with another method, or at another route, e.g. one for another host. There are few, and a Map would take more memory than
   * all the rest.
   */
  readonly next: Place | undefined
}

/** The facts about one request from which keys are made. */
export interface KeyFacts {
  route(): string
  /** The address as a key. */
  address(): string
  /** An address as a key. Undefined for a text that isn't exactly one address. */
  keyOf(address: string | undefined): string | undefined
  header(name: string): string | undefined
}

/**
 * The facts about one request that policies need. Each is computed once at most, and not again for the next requests to the same path. One
 * object serves all requests in turn.
 */
export class RequestFacts<Req> implements KeyFacts {
  readonly #reader: RequestReader<Req>
  readonly #addressKey: (address: string | undefined) => string
  readonly #watch: ProxyWatch<Req>
  readonly #index: PathPolicies | undefined
  readonly #everywhere: readonly number[]
  readonly #caseSensitive: boolean
  readonly #paths = new Recent<Place>(REMEMBERED)
  readonly #routes = new Recent<Map<string, string>>(REMEMBERED)
  // Not typed, so that facts (and a throttler) for any request can be used for requests of one type.
  #request: unknown
  #place: Place | undefined
  #route: string | undefined
  #address: string | undefined

  /**
   * @param index of the policies' path patterns; undefined if there are none
   * @param everywhere the policies without a path pattern, ascending
   */
  constructor(
    reader: RequestReader<Req>,
    addressKey: (address: string | undefined) => string,
    watch: ProxyWatch<Req>,
    index: PathPolicies | undefined,
    everywhere: readonly number[],
    caseSensitive: boolean,
  ) {
    this.#reader = reader
    this.#addressKey = addressKey
    this.#watch = watch
    this.#index = index
    this.#everywhere = everywhere
    this.#caseSensitive = caseSensitive
  }

  begin(request: Req): void {
    this.#request = request
    this.#place = undefined
    this.#route = undefined
    this.#address = undefined
  }

  /** Drops the reference to the request. */
  end(): void {
    this.#request = undefined
  }

  /**
   * The facts that stay available while other requests are read. They are read now, because a framework may know the route of the current
   * request only. If that fails, the error is thrown when the fact is used.
   *
   * @param byRoute whether any rule counts by route
   */
  known(byRoute: boolean): KeyFacts {
    const route = byRoute ? this.#routeOrError() : undefined
    const address = this.address()
    const request = this.#request as Req
    return {
      route: () => {
        if (typeof route === 'string') return route
        throw route
      },
      address: () => address,
      keyOf: (text) => this.keyOf(text),
      header: (name) => this.#reader.header(request, name),
    }
  }

  #routeOrError(): unknown {
    try {
      return this.route()
    } catch (error) {
      return error
    }
  }

  /** The policies that may apply by path and method. */
  policies(): readonly number[] {
    if (this.#index === undefined) return this.#everywhere
    const { policies } = this.#locate()
    const rewritten = this.#reader.rewritten?.(this.#request as Req)
    return rewritten === undefined ? policies : inOrder(new Set([...policies, ...this.#look(rewritten).policies]))
  }

  route(): string {
    this.#route ??= this.#readRoute()
    return this.#route
  }

  address(): string {
    if (this.#address === undefined) {
      const address = this.#readAddress()
      this.#address = this.#addressKey(address)
      this.#watch.look(this.#request as Req, address, this.#address !== UNKNOWN_ADDRESS)
    }
    return this.#address
  }

  keyOf(address: string | undefined): string | undefined {
    const key = this.#addressKey(address)
    return key === UNKNOWN_ADDRESS ? undefined : key
  }

  header(name: string): string | undefined {
    return this.#reader.header(this.#request as Req, name)
  }

  #readAddress(): string | undefined {
    try {
      return this.#reader.ip(this.#request as Req)
    } catch (error) {
      // The application's trust function may throw. The request then has an unknown address, but it is still counted.
      this.#watch.failed(this.#request as Req, error)
      return undefined
    }
  }

  #readRoute(): string {
    const request = this.#request as Req
    const pattern = this.#reader.route(request)
    if (pattern === undefined) return this.#locate().key
    if (pattern.charCodeAt(0) !== 47) return bounded(pattern)
    const method = countedMethod(this.#reader.method(request))
    let keys = this.#routes.get(pattern)
    if (keys === undefined) {
      keys = new Map()
      if (pattern.length <= LONGEST_REMEMBERED) this.#routes.set(pattern, keys)
    }
    let key = keys.get(method)
    if (key === undefined) {
      key = copied(bounded(`${method} ${pattern}`))
      if (keys.size < PLACES_REMEMBERED) keys.set(method, key)
    }
    return key
  }

  #locate(): Place {
    this.#place ??= this.#look(this.#reader.path(this.#request as Req))
    return this.#place
  }

  #look(target: string): Place {
    const request = this.#request as Req
    const method = countedMethod(this.#reader.method(request))
    const pattern = this.#reader.pattern?.(request)
    // The query is cut off first, because it would make every target a new one.
    const query = target.indexOf('?')
    const raw = query === -1 ? target : target.slice(0, query)
    if (raw.length > LONGEST_REMEMBERED) return this.#work(method, raw, target, pattern, undefined)
    const first = this.#paths.get(raw)
    let places = 0
    for (let place = first; place !== undefined; place = place.next) {
      if (place.method === method && place.pattern === pattern) return place
      places++
    }
    const place = this.#work(method, raw, target, pattern, first)
    // A router's reading of a backslash may depend on the query.
    if (places < PLACES_REMEMBERED && !raw.includes('\\')) this.#paths.set(raw, place)
    return place
  }

  #work(method: string, raw: string, whole: string, pattern: string | undefined, next: Place | undefined): Place {
    const plain = isPlain(raw)
    const own = plain ? undefined : this.#reader.readings?.(raw, whole)
    const route = plain ? this.#foldPlain(raw) : this.#agreed(own)
    const key = copied(bounded(`${method} ${route}`))
    if (this.#index === undefined) return { method, pattern, key, policies: this.#everywhere, next }
    const found = new Set(this.#everywhere)
    const samples = pattern === undefined ? undefined : this.#reader.samples?.(pattern)
    this.#index.find(method, raw, plain, own ?? [], samples ?? [], found)
    return { method, pattern, key, policies: inOrder(found), next }
  }

  /** Only the beginning of a long path is in its route, so folding first leaves less to put into lower case. */
  #foldPlain(path: string): string {
    const route = foldPath(path)
    return this.#caseSensitive ? route : route.toLowerCase()
  }

  #fold(path: string): string {
    return foldPath(withoutDots(normalizePath(path, this.#caseSensitive)))
  }

  /** The route of a target that has several readings, if they are spellings of one. */
  #agreed(own: Readings | undefined): string {
    let route: string | undefined
    for (const path of own ?? []) {
      const folded = this.#fold(path)
      if (route !== undefined && route !== folded) return UNCLEAR
      route = folded
    }
    return route ?? UNCLEAR
  }
}

function inOrder(found: ReadonlySet<number>): readonly number[] {
  return [...found].sort((a, b) => a - b)
}
