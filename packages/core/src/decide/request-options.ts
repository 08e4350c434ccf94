import type { Awaitable } from '../report/user-function.ts'

/** A key made by `header()`. */
export interface HeaderKey {
  /** The header's name in lower case. */
  readonly header: string
}

/** One source of a key. A function gets the framework's own request, and may answer later. */
export type KeySource<Req> = 'route' | 'ip' | 'all' | HeaderKey | ((request: Req) => Awaitable<string | number | bigint | undefined | null>)

/** What requests are counted by: one source, or several that are combined without ambiguity. */
export type KeyOption<Req> = KeySource<Req> | readonly KeySource<Req>[]

/** `'POST /api/x'`, `'/api/*rest'` (path-to-regexp 8 syntax), several of them, or a function of the request, which may answer later. */
export type MatchOption<Req> = string | readonly string[] | ((request: Req) => Awaitable<boolean>)
