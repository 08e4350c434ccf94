import { bounded, copied } from '../key-text.ts'
import type { PathIndex } from './path-index.ts'
import type { RequestReader } from './reader.ts'
import { Recent } from './recent.ts'
import { countedMethod, foldPath, normalizePath, pathOf, withoutDots } from './route-key.ts'

/**
 * Paths and routes that are remembered, in each of two generations; longer paths are worked out each time, and so are further
 * methods of a path. A client that makes paths up takes at most about 2 KB for each of 4,000, and as much for each of 4,000
 * routes where it can make up routes: 16 MB for a middleware.
 */
const REMEMBERED = 2000
const LONGEST_REMEMBERED = 256
const METHODS_REMEMBERED = 4

/** What is known of one path and method. */
interface Place {
  readonly method: string
  /** The route key. */
  readonly key: string
  /** The policies with a path pattern that matches, and those without one; in their order. */
  readonly policies: readonly number[]
  /** The same path with another method; methods are few, and a Map for each path would hold more than all else. */
  readonly next: Place | undefined
}

/**
 * What the policies ask about one request, each worked out once at most, and not again for the next requests to the same
 * path. One object serves all requests in turn.
 */
export class RequestFacts<Req> {
  readonly #reader: RequestReader<Req>
  readonly #addressKey: (address: string | undefined) => string
  readonly #index: PathIndex
  readonly #everywhere: readonly number[]
  readonly #caseSensitive: boolean
  readonly #paths = new Recent<Place>(REMEMBERED)
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
      if (keys.size < METHODS_REMEMBERED) keys.set(method, key)
    }
    return key
  }

  #locate(): Place {
    if (this.#place !== undefined) return this.#place
    const request = this.#request as Req
    const target = this.#reader.path(request)
    const method = countedMethod(this.#reader.method(request))
    // The query is cut off first: it would make every target a new one.
    const raw = pathOf(target)
    const first = this.#paths.get(raw)
    let methods = 0
    for (let place = first; place !== undefined; place = place.next) {
      if (place.method === method) return (this.#place = place)
      methods++
    }
    const place = this.#work(method, raw, first)
    if (raw.length <= LONGEST_REMEMBERED && methods < METHODS_REMEMBERED) this.#paths.set(raw, place)
    return (this.#place = place)
  }

  #work(method: string, raw: string, next: Place | undefined): Place {
    const spelled = normalizePath(raw, this.#caseSensitive)
    const path = withoutDots(spelled)
    const key = copied(bounded(`${method} ${foldPath(path)}`))
    if (this.#index.empty) return { method, key, policies: this.#everywhere, next }
    const found = new Set(this.#everywhere)
    this.#index.find(method, path, found)
    // Frameworks don't resolve dots: a wildcard route would serve the path as it stands, so its policy must apply too.
    if (spelled !== path) this.#index.find(method, spelled, found)
    return { method, key, policies: [...found].sort((a, b) => a - b), next }
  }
}
