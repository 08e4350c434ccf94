import type { Store as WeirStore } from '@weir/core'
import type { Redis } from 'ioredis'

/** The store of a middleware: Weir's over Redis, its own over Redis, or its own in memory. */
export type Kind = 'weir' | 'redis' | 'memory'

/** One limit of a middleware. */
export interface Limit {
  readonly name: string
  readonly limit: number
  /** Milliseconds. */
  readonly interval: number
}

/** The connections of a process, which the limits share. */
export interface Connections {
  readonly weir: WeirStore
  readonly redis: Redis
}

/** Runs the middleware for a request of an address. Returns whether the request is allowed. */
export type Handles = (address: string) => Promise<boolean>
