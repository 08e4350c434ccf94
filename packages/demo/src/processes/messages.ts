import type { Snapshot } from '@weir/core/inspect'
import type { ServerKind } from '../store/choose.ts'

/** Whose limit a request counts towards: the demo's clients say who they are, as API clients do with their key. */
export const CLIENT_HEADER = 'x-client'
/** When a request reached its gateway, milliseconds since the epoch: which interval it belongs to is judged by this. */
export const ARRIVED_HEADER = 'x-arrived'

/** The client whose requests only warm the gateways up. */
export const WARM_UP = 'warm-up'

export type Framework = 'express' | 'fastify' | 'koa'
export const FRAMEWORKS: readonly Framework[] = ['express', 'fastify', 'koa']

/** Names of the two levels. */
export const CLIENT_POLICY = 'client'
export const GLOBAL_POLICY = 'everyone'

/** The settings of a gateway, passed as JSON in its first argument. Times are milliseconds. */
export interface GatewayConfig {
  readonly framework: Framework
  readonly backendPort: number
  /** Undefined: the parent process is the store. */
  readonly store: { readonly kind: 'redis' | ServerKind; readonly url: string; readonly namespace: string } | undefined
  readonly limit: number
  /** Limit of everyone together; undefined for none. */
  readonly globalLimit: number | undefined
  readonly interval: number
  readonly spans: number
  readonly cooldown: number
  /** Whether counts are exchanged in the background, or the store decides about each request. */
  readonly coordination: 'background' | 'central'
  /** Whether this gateway serves the dashboard of the cluster. */
  readonly page: boolean
}

/** From a child to the parent: it listens. */
export interface Ready {
  readonly type: 'demo:ready'
  readonly port: number
  /** Name and version of what runs in it, e.g. `Express 5.3.0`. */
  readonly about: string
  /** Where a server is that the child holds. */
  readonly url?: string
  /** Address of the dashboard, where the child serves one. */
  readonly page?: string
}

/** How long requests took from their arrival at the gateway until it handed them on to the backend, in milliseconds. */
export interface Timing {
  readonly count: number
  readonly median: number
  readonly p99: number
  readonly max: number
}

/** From a gateway to the parent, some times a second. */
export interface Report {
  readonly type: 'demo:report'
  readonly snapshot: Snapshot
  readonly timing: Timing
  /** When it was taken, milliseconds since the epoch. */
  readonly time: number
}

/** From a gateway to the parent: its store went away, or came back. */
export interface StateChange {
  readonly type: 'demo:state'
  readonly state: 'storeDown' | 'storeUp'
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** From a child to the parent: it could not start. */
export interface Failed {
  readonly type: 'demo:failed'
  readonly reason: string
}

export type FromChild = Ready | Report | StateChange | Failed

/** From the parent: end; or, for the keeper of Redis, kill it and start it again. */
export interface Order {
  readonly type: 'demo:stop' | 'demo:kill' | 'demo:start'
}

/** The channel carries the store's messages too: only those of the demo are ours. */
export function isOurs<T extends FromChild | Order>(message: unknown): message is T {
  return typeof message === 'object' && message !== null && 'type' in message && String(message.type).startsWith('demo:')
}
