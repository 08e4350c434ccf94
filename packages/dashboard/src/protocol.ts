import type { BlockedKey, ClusterNode, KeyUsage, PolicySnapshot, SyncSnapshot } from '@weir/core/inspect'

/** One policy of the cluster. What is not a rate is as the answering node knows it. */
export interface PolicyView extends Partial<Omit<PolicySnapshot, 'admitted' | 'refused' | 'blocks' | 'share'>> {
  readonly name: string
  readonly limit: number
  readonly interval: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** Units that a key may take at once after rest: the limit, or what a bucket holds. */
  readonly capacity: number
  readonly blocked: number
  /** Units of all nodes that their store does not know of yet. */
  readonly unsynced: number
  /** Units that nodes hold ahead of requests, all together. */
  readonly held: number
  readonly overshoot: number
  /** Units and requests per second, of all nodes. */
  readonly admittedRate: number
  readonly refusedRate: number
}

export interface NodeView
  extends Pick<ClusterNode, 'node' | 'label' | 'self' | 'state' | 'age' | 'uptime' | 'roundTrip' | 'failures' | 'clockOffset'> {
  readonly admittedRate: number
  readonly refusedRate: number
  readonly unsynced: number
  /** This node's part of what the cluster admits just now. */
  readonly share: number
}

/** One of the most used keys, with what the nodes have admitted of it together. */
export type TopKey = Omit<KeyUsage, 'own'>

/** A moment of the charts: milliseconds since the Unix epoch, units and requests per second, milliseconds. */
export type Point = readonly [time: number, admitted: number, refused: number, roundTrip: number]

export interface LogEntry {
  readonly time: number
  readonly kind: 'blocked' | 'unblocked' | 'degraded' | 'recovered' | 'overflow' | 'nodes' | 'warning'
  readonly text: string
}

/** The state of the cluster as the page shows it. */
export interface View {
  readonly time: number
  readonly node: string
  readonly state: string
  readonly degradedFor: number
  /** Live nodes, those included that have not told of themselves yet. */
  readonly nodeCount: number
  readonly actions: boolean
  readonly point: Point
  readonly policies: readonly PolicyView[]
  readonly nodes: readonly NodeView[]
  readonly top: readonly TopKey[]
  readonly blocked: readonly BlockedKey[]
  readonly sync: SyncSnapshot
  readonly log: readonly LogEntry[]
}

/** What a stream begins with. */
export interface Hello {
  /** Changes with the page: an older one loads itself again. */
  readonly build: string
  readonly history: readonly Point[]
  /** Whether the reader has signed in, and so may sign out. */
  readonly signOut: boolean
}

/** What is known of one key. */
export interface Found {
  readonly parts: readonly {
    readonly policy: string
    readonly key: string
    /** What the key may use: the limit, or what a bucket holds. */
    readonly limit: number
    readonly remaining: number
    readonly reason: string
    /** Milliseconds. */
    readonly retryAfter: number
  }[]
  /** Blocked keys that hold the text. */
  readonly blocked: readonly BlockedKey[]
}
