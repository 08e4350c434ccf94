import type { Snapshot } from '@weir/core/inspect'
import type { ServerKind } from '../store/choose.ts'

/** Names the client whose limit counts the request. The demo's clients send it like an API key. */
export const CLIENT_HEADER = 'x-client'
/** Time when a request reached its gateway, milliseconds since the epoch. It decides to which interval the request belongs. */
export const ARRIVED_HEADER = 'x-arrived'

/** The client of requests that only warm up the gateways. */
export const WARM_UP = 'warm-up'

export type Framework = 'express' | 'fastify' | 'koa'
export const FRAMEWORKS: readonly Framework[] = ['express', 'fastify', 'koa']

/** Names of the two policies. */
export const CLIENT_POLICY = 'client'
export const GLOBAL_POLICY = 'everyone'

/** The settings of a gateway, passed as JSON in its first argument. Times are milliseconds. */
export interface GatewayConfig {
  readonly framework: Framework
  readonly backendPort: number
  /** Undefined if the parent process is the store. */
  readonly store: { readonly kind: 'redis' | ServerKind; readonly url: string; readonly namespace: string } | undefined
  readonly limit: number
  /** Limit of all clients together. Undefined without one. */
  readonly globalLimit: number | undefined
  readonly interval: number
  readonly spans: number
  readonly cooldown: number
  /** Whether counts are synced in the background, or the store decides each request. */
  readonly coordination: 'background' | 'central'
  /** Whether this gateway serves the dashboard of the cluster. */
  readonly page: boolean
}

/** From a child to the parent: the child is listening. */
export interface Ready {
  readonly type: 'demo:ready'
  readonly port: number
  /** Name and version of its program, e.g. `Express 5.3.0`. */
  readonly about: string
  /** URL of a server that the child has started. */
  readonly url?: string
  /** Address of the dashboard, if the child serves it. */
  readonly page?: string
}

/** Milliseconds from a request's arrival at the gateway until it is forwarded to the backend. */
export interface Timing {
  readonly count: number
  readonly median: number
  readonly p99: number
  readonly max: number
}

/** From a gateway to the parent, several times a second. */
export interface Report {
  readonly type: 'demo:report'
  readonly snapshot: Snapshot
  readonly timing: Timing
  /** Time of the snapshot in milliseconds since the epoch. */
  readonly time: number
}

/** From a gateway to the parent: its store is down, or up again. */
export interface StateChange {
  readonly type: 'demo:state'
  readonly state: 'storeDown' | 'storeUp'
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** From a child to the parent: the start failed. */
export interface Failed {
  readonly type: 'demo:failed'
  readonly reason: string
}

export type FromChild = Ready | Report | StateChange | Failed

/** From the parent to a child: end, or for the keeper of Redis, kill or start it. */
export interface Order {
  readonly type: 'demo:stop' | 'demo:kill' | 'demo:start'
}

/** Whether a message is the demo's. The channel also carries messages of the store. */
export function isOurs<T extends FromChild | Order>(message: unknown): message is T {
  return typeof message === 'object' && message !== null && 'type' in message && String(message.type).startsWith('demo:')
}
