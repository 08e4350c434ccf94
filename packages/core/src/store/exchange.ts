import type { BlockChange } from './blocks.ts'
import type { HeartbeatReply, HeartbeatRequest } from './heartbeat.ts'
import type { LeaseAsk, LeaseReply } from './leases/ask.ts'
import type { Cell, StorePolicy } from './policy.ts'

/** The counts of one key that a node sends. */
export interface SyncEntry {
  readonly policy: StorePolicy
  readonly key: string
  /** This node's absolute counts. A cell with 0 taken and 0 given only asks for the total and writes nothing. */
  readonly cells: readonly Cell[]
  /** The key's last reset as this node knows it, where that concerns the first cell (see `lastCellOf`). Absent for none. */
  readonly epoch?: number
  /** Tells the other nodes to send what they have of the key, also where it is little. */
  readonly ask?: true
  /** Quota taken ahead: such an entry has no cells. A store without leases answers without `lease`. */
  readonly lease?: LeaseAsk
}

/** The result for one entry. */
export interface SyncResult {
  /**
   * The cluster's totals: for a fixed window the cells that were sent, in that order; for a sliding one every cell of
   * the window that is not empty (those up to `cells` behind the newest sent one), oldest first; for a bucket one cell with its `level`.
   */
  readonly cells: readonly Cell[]
  /** Milliseconds for which the key is still blocked; 0 when it is not. */
  readonly blocked: number
  /** The block was set by hand. */
  readonly manual?: true
  /**
   * The key was reset, and the entry's units were counted before that as far as its node knows (its `epoch` is older or
   * absent): nothing of it was written. `cells` are of after the reset.
   */
  readonly epoch?: number
  /** The answer to `lease`. */
  readonly lease?: LeaseReply
}

/** One exchange, as a node asks for it. */
export interface SyncRequest {
  readonly entries: readonly SyncEntry[]
  readonly blocks: readonly BlockChange[]
  /**
   * The time that the nodes go by, milliseconds since the Unix epoch: in heartbeats, and while it is far from what the store's
   * clock shows, as that was stepped and nodes approach it slowly. A store that goes by its own clock, for the age of cells
   * or the end of blocks, goes by this one instead. Absent until the store has answered.
   */
  readonly time?: number
  /** Present in heartbeats; without it the reply's `heartbeat` is absent. */
  readonly heartbeat?: HeartbeatRequest
}

/** The reply to a sync. */
export interface SyncReply {
  /** The store's clock while it handled the request, milliseconds since the Unix epoch. */
  readonly time: number
  /** Parallel to `entries`; undefined for a part that failed and must be sent again. */
  readonly results: readonly (SyncResult | undefined)[]
  /** Parallel to `blocks`: milliseconds for which the key is blocked after the change; undefined when it failed. */
  readonly blocks: readonly (number | undefined)[]
  readonly heartbeat?: HeartbeatReply
}
