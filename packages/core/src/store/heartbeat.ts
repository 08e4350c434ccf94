import type { TotalAnnouncement } from './announcement.ts'
import type { BlockState } from './blocks.ts'
import type { LeaseNotice } from './leases/ask.ts'
import type { StorePolicy } from './policy.ts'

/** A process's report and its questions, once a heartbeat. */
export interface HeartbeatRequest {
  /** How long this node counts as live if it is not heard of again, in milliseconds. */
  readonly ttl: number
  /** The `cursor` of the last heartbeat's reply; undefined at a node's start: everything is handed out. */
  readonly cursor: string | undefined
  /** The policies whose hot keys and blocks this node wants. */
  readonly policies: readonly StorePolicy[]
  /** The process's report about itself, up to 8,192 UTF-16 units. The store keeps it as long as the process counts as live. */
  readonly status?: string
  /** News of leases are wanted. */
  readonly leases?: true
  /**
   * The process's rules, up to 8,192 UTF-16 units. The store keeps them for a minute, so that processes notice different rules of one name.
   * If it is set, the reply contains the rules of others.
   */
  readonly rules?: string
  /** Somebody looks at the cluster here: hand out all statuses, and let the other nodes know for 10 s that they are wanted. */
  readonly watch?: true
}

/** The reply to a heartbeat: live processes, and changes since the last one. */
export interface HeartbeatReply {
  /** Live nodes, this one included; at least 1. */
  readonly nodes: number
  /** Changes when the store lost data: send running counts and remaining blocks again. */
  readonly generation: string
  /** To be handed back with the next heartbeat. Opaque. */
  readonly cursor: string
  /** Blocks that were set or lifted since the cursor; all of them when there was none. */
  readonly blocks: readonly BlockState[]
  /** At a node's start (no cursor): keys whose total passed `hot` in their running cell or window. */
  readonly hot: readonly TotalAnnouncement[]
  /**
   * By how much the time that nodes go by (`time` of their heartbeats) is ahead of the store's clock, in milliseconds, if one
   * of them said lately that it is far from it, and none since that it is not: a node that starts joins them. A store
   * that does not support it leaves this out.
   */
  readonly ahead?: number
  /** When `leases` was set: keys whose leases are news that some nodes may not have heard, those of the last heartbeat lifetime. */
  readonly leases?: readonly LeaseNotice[]
  /** Whether any node watches the cluster. A store that does not support it leaves this out. */
  readonly watched?: boolean
  /** When `watch` was set: the newest status of each live node that told one. */
  readonly statuses?: readonly StatusReport[]
  /**
   * When `rules` was told: every other text that nodes told in the last minute, each once, up to 64 of them. A store that does
   * not support it leaves this out.
   */
  readonly rules?: readonly RulesReport[]
}

/** The rules that a process reported. */
export interface RulesReport {
  /** The node that told this text last. */
  readonly node: string
  readonly rules: string
}

/** A live node's status, as the store keeps it. */
export interface StatusReport {
  readonly node: string
  readonly status: string
  /** Milliseconds since the store got it. */
  readonly age: number
}
