import type { PathIndex } from './path-index.ts'
import type { RequestReader } from './reader.ts'
import { Recent } from './recent.ts'
import { countedMethod, foldPath, normalizePath, pathOf, withoutDots } from './route-key.ts'

/** Paths and routes that are remembered; longer paths than 512 characters are worked out each time. */
const REMEMBERED = 2000
const LONGEST_REMEMBERED = 512

/** What is known of one path (or route pattern) and method. */
interface Place {
  /** The route key. */
  readonly key: string
  /** The policies with a path pattern that matches, and those without one; in their order. */
  readonly policies: readonly number[]
}

/** What is known of one path or route pattern; methods are few, so they are kept beside it. */
type Places = Map<string, Place>

/** What keys are made from, of one request. */
export interface KeyFacts {
  route(): string
  /** The address as a key. */
  address(): string
  header(name: string): string | undefined
}

/**
 * What the policies ask about one request, each worked out once at most, and not again for the next requests to the same
 * path. One object serves all requests in turn.
 */
export class RequestFacts<Req> implements KeyFacts {
  readonly #reader: RequestReader<Req>
  readonly #addressKey: (address: string | undefined) => string
  readonly #index: PathIndex
  readonly #everywhere: readonly number[]
  readonly #caseSensitive: boolean
  readonly #paths = new Recent<Places>(REMEMBERED)
  readonly #routes = new Recent<Map<string, string>>(REMEMBERED)
  // Not typed, so that facts (and a throttler) for any request serve where facts for a certain one are asked for.
  #request: unknown
  #place: Place | undefined
  #route: string | undefined
  #address: string | undefined

  /** @param everywhere the policies without a path pattern, ascending */
  constructor(
    reader: RequestReader<Req>,
    addressKey: (address: string | undefined) => string,
    index: PathIndex,
    everywhere: readonly number[],
    caseSensitive: boolean,
  ) {
    this.#reader = reader
    this.#addressKey = addressKey
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

  /** Lets go of the request. */
  end(): void {
    this.#request = undefined
  }

  /**
   * What stays known of the request while others are read. It is read now, since a framework may tell the route of the request
   * at hand only; where that fails, it fails when it is asked for.
   *
   * @param byRoute whether anybody asks for its route
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
    return this.#index.empty ? this.#everywhere : this.#locate().policies
  }

  route(): string {
    this.#route ??= this.#readRoute()
    return this.#route
  }

  address(): string {
    this.#address ??= this.#addressKey(this.#readAddress())
    return this.#address
  }

  header(name: string): string | undefined {
    return this.#reader.header(this.#request as Req, name)
  }

  #readAddress(): string | undefined {
    try {
      return this.#reader.ip(this.#request as Req)
    } catch {
      // A host's own trust function may throw; the request is then one of unknown origin, not one that is free.
      return undefined
    }
  }

  #readRoute(): string {
    const request = this.#request as Req
    const pattern = this.#reader.route(request)
    if (pattern === undefined) return this.#locate().key
    if (pattern.charCodeAt(0) !== 47) return pattern
    const method = countedMethod(this.#reader.method(request))
    let keys = this.#routes.get(pattern)
    if (keys === undefined) this.#routes.set(pattern, (keys = new Map()))
    let key = keys.get(method)
    if (key === undefined) keys.set(method, (key = `${method} ${pattern}`))
    return key
  }

  #locate(): Place {
    if (this.#place !== undefined) return this.#place
    const request = this.#request as Req
    const target = this.#reader.path(request)
    const method = countedMethod(this.#reader.method(request))
    // The query is cut off first: it would make every target a new one.
    const raw = pathOf(target)
    let places = this.#paths.get(raw)
    if (places === undefined) {
      places = new Map()
      if (raw.length <= LONGEST_REMEMBERED) this.#paths.set(raw, places)
    }
    let place = places.get(method)
    if (place === undefined) places.set(method, (place = this.#work(method, raw)))
    this.#place = place
    return place
  }

  #work(method: string, raw: string): Place {
    const spelled = normalizePath(raw, this.#caseSensitive)
    const path = withoutDots(spelled)
    const key = `${method} ${foldPath(path)}`
    if (this.#index.empty) return { key, policies: this.#everywhere }
    const found = new Set(this.#everywhere)
    this.#index.find(method, path, found)
    // Frameworks don't resolve dots: a wildcard route would serve the path as it stands, so its policy must apply too.
    if (spelled !== path) this.#index.find(method, spelled, found)
    return { key, policies: [...found].sort((a, b) => a - b) }
  }
}
