import type { TotalAnnouncement } from './announcement.ts'
import type { BlockState } from './blocks.ts'
import type { LeaseNotice } from './leases/ask.ts'
import type { StorePolicy } from './policy.ts'

/** A process's report and its questions, once a heartbeat. */
export interface HeartbeatRequest {
  /** Milliseconds for which this process counts as live if no further heartbeat arrives. */
  readonly ttl: number
  /**
   * The `cursor` of the last heartbeat's reply. It is undefined when the process starts. Then the reply contains all blocks and hot keys.
   */
  readonly cursor: string | undefined
  /** The policies whose hot keys and blocks this process needs. */
  readonly policies: readonly StorePolicy[]
  /** The process's report about itself, up to 8,192 UTF-16 units. The store keeps it as long as the process counts as live. */
  readonly status?: string
  /** Requests `HeartbeatReply.leases`. */
  readonly leases?: true
  /**
   * The process's rules, up to 8,192 UTF-16 units. The store keeps them for a minute, so that processes notice different rules of one name.
   * If it is set, the reply contains the rules of others.
   */
  readonly rules?: string
  /**
   * A user watches the cluster at this process. The reply contains all statuses, and for 10 s the replies to other processes have
   * `watched`, so that they report theirs.
   */
  readonly watch?: true
}

/** The reply to a heartbeat: live processes, and changes since the last one. */
export interface HeartbeatReply {
  /** Live processes, including this one. At least 1. */
  readonly nodes: number
  /** Changes if the store lost data. Then the process sends its counts and its remaining blocks again. */
  readonly generation: string
  /** Opaque. The process sends it with the next heartbeat. */
  readonly cursor: string
  /** Blocks that were set or lifted since the cursor, or all blocks if the request had no cursor. */
  readonly blocks: readonly BlockState[]
  /** If the request had no cursor: keys whose total passed `hot` in their running cell or window. */
  readonly hot: readonly TotalAnnouncement[]
  /**
   * Milliseconds by which the time of the processes (`time` of their heartbeats) is ahead of the store's clock. It is present if the latest
   * such heartbeat showed a large difference. A process that starts then uses the time of the others. A store that does not support it
   * leaves this out.
   */
  readonly ahead?: number
  /**
   * If `leases` was set: keys whose leases were announced within the last heartbeat lifetime, because some processes may have missed that.
   */
  readonly leases?: readonly LeaseNotice[]
  /** Whether any process watches the cluster. A store that does not support it leaves this out. */
  readonly watched?: boolean
  /** If `watch` was set: the newest status of each live process that reported one. */
  readonly statuses?: readonly StatusReport[]
  /**
   * If `rules` was set: every other text that processes reported in the last minute, each once, up to 64 of them. A store that does not
   * support it leaves this out.
   */
  readonly rules?: readonly RulesReport[]
}

/** The rules that a process reported. */
export interface RulesReport {
  /** The process that reported this text last. */
  readonly node: string
  readonly rules: string
}

/** A live process's status, as the store keeps it. */
export interface StatusReport {
  readonly node: string
  readonly status: string
  /** Milliseconds since the store received it. */
  readonly age: number
}
