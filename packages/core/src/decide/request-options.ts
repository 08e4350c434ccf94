import type { Awaitable } from '../report/user-function.ts'

/** A key made by `header()`, or by `address()` of one. */
export interface HeaderKey {
  /** The header's name in lower case. */
  readonly header: string
  /**
   * Reads the value as an address, see `address()`.
   *
   * @default false
   */
  readonly address?: boolean
}

/** A key made by `address()` of a function. */
export interface AddressKey<Req> {
  /** Returns a client's address. See `address()`. */
  readonly address: (request: Req) => Awaitable<string | undefined | null>
}

/** One source of a key. A function receives the framework's own request, and may return a promise. */
export type KeySource<Req> =
  | 'route'
  | 'ip'
  | 'all'
  | HeaderKey
  | AddressKey<Req>
  | ((request: Req) => Awaitable<string | number | bigint | undefined | null>)

/** The key that requests are counted by: one source, or several that are combined without ambiguity. */
export type KeyOption<Req> = KeySource<Req> | readonly KeySource<Req>[]

/** Finds the policies whose path patterns match a request. */
export interface PathPolicies {
  add(patterns: readonly string[], policy: number): void
  /**
   * Adds the policies with a matching pattern to `found`.
   *
   * @param target as the client sent it, without its query
   * @param plain whether it has only one reading
   * @param own the target as the framework's router reads it, if that is known
   * @param samples paths that represent the route that the framework has matched
   */
  find(method: string, target: string, plain: boolean, own: Iterable<string>, samples: Iterable<string>, found: Set<number>): void
}

/** Path patterns, made by `paths()`. */
export interface PathMatch {
  readonly patterns: readonly string[]
  /** The same for all spellings of the same patterns, in every process. */
  readonly id: string
  /** Makes the finder for these patterns and for patterns of other policies. */
  readonly index: () => PathPolicies
}

/** `paths('POST /api/x', '/api/*rest')`, or a function of the request, which may return a promise. */
export type MatchOption<Req> = PathMatch | ((request: Req) => Awaitable<boolean>)

/** Checks its members, because the ESM and the CommonJS build each have their own class. */
export function isPathMatch(match: unknown): match is PathMatch {
  if (typeof match !== 'object' || match === null) return false
  const { patterns, id, index } = match as Partial<PathMatch>
  return Array.isArray(patterns) && typeof id === 'string' && typeof index === 'function'
}
