import type { Snapshot } from '@weir/core/inspect'

/** The three adapters, each in its own process. */
export type Adapter = 'express' | 'fastify' | 'koa'
export const ADAPTERS: readonly Adapter[] = ['express', 'fastify', 'koa']

/** The header with the key of a request. */
export const KEY_HEADER = 'x-client'
/** The header with the time at which a request reached its process, by the monotonic clock that all processes of this machine share. */
export const ARRIVED_HEADER = 'x-arrived'

/** The policy that is enforced. */
export const LIMITED = 'limited'
/** A policy whose limit is never reached. Its counters show whether units were lost or doubled. */
export const BOOKS = 'books'
/** Spans so short that counts are sent at least every second. */
export const BOOKS_SPANS = 1_000

/**
 * An interval for the books that ends in four minutes at the earliest. If the store loses its data, processes resend the counts of
 * the running interval, but not of an earlier one.
 */
export function booksInterval(now: number = Date.now()): number {
  for (let interval = 600_000; ; interval += 30_000) if (interval - (now % interval) > 240_000) return interval
}

/** The way in which a process reaches its store: an argument of `redisStore` as JSON, or the address of another store. */
export type Target =
  | string
  | { readonly port: number; readonly [option: string]: unknown }
  | {
      readonly sentinels: readonly { readonly host: string; readonly port: number }[]
      readonly name: string
      readonly [option: string]: unknown
    }
  | { readonly cluster: readonly { readonly host: string; readonly port: number }[]; readonly options?: object }

/** The settings of a throttler that a process must make. */
export interface Rule {
  readonly namespace: string
  readonly target: Target
  readonly limit: number
  readonly interval: number
  readonly spans: number
  readonly cooldown?: number
  /** Uses a token bucket instead of a fixed window. */
  readonly bucket?: boolean
  /** The coordination of the enforced policy. Default `'background'`. */
  readonly coordination?: 'leased'
  readonly failMode?: 'share' | 'open' | 'closed'
  readonly closeTimeout?: number
  /** The interval of the books, in milliseconds. It is chosen when processes receive the rule. */
  readonly books?: number
  /** A name that does not resolve until the process receives the order `resolve`. */
  readonly unresolved?: string
}

export type Order =
  | { readonly type: 'renew'; readonly rule: Rule }
  | { readonly type: 'limit'; readonly limit: number }
  | { readonly type: 'resolve' }
  | { readonly type: 'close' }
  | { readonly type: 'snapshot' }
  | { readonly type: 'heap' }
  | { readonly type: 'stall'; readonly ms: number }

/** A process's answer to an order. */
export interface Answer {
  readonly type: 'answer'
  readonly id: number
  readonly error?: string
  readonly snapshot?: Snapshot
  /** Milliseconds that closing took. */
  readonly took?: number
  readonly heap?: Heap
}

/** Memory that a process keeps after a garbage collection. */
export interface Heap {
  readonly used: number
  /** Active resources by kind, e.g. `Timeout`, `TCPSocketWrap`. */
  readonly resources: Readonly<Record<string, number>>
}

export interface Ready {
  readonly type: 'ready'
  readonly port: number
}

/** The store went down or came back, at a time of the shared monotonic clock. */
export interface StateChange {
  readonly type: 'state'
  readonly state: 'storeDown' | 'storeUp'
  readonly at: number
  readonly cause?: string
}

export type FromNode = Ready | Answer | StateChange

/** Milliseconds of the monotonic clock that all processes of a machine share. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}
