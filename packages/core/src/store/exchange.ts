import type { BlockChange } from './blocks.ts'
import type { HeartbeatReply, HeartbeatRequest } from './heartbeat.ts'
import type { LeaseAsk, LeaseReply } from './leases/ask.ts'
import type { Cell, StorePolicy } from './policy.ts'

/** A key write: the counts of one key that a process sends. */
export interface SyncEntry {
  readonly policy: StorePolicy
  readonly key: string
  /** This process's absolute counts. A cell with 0 taken and 0 given only requests the total and writes nothing. */
  readonly cells: readonly Cell[]
  /** The key's last reset that this process knows, if it concerns the first cell (see `lastCellOf`). Otherwise absent. */
  readonly epoch?: number
  /** Requests the other processes' counts of the key, even small ones. The store announces the request to them. */
  readonly ask?: true
  /** The request for a lease. Such an entry has no cells. A store without leases replies without `lease`. */
  readonly lease?: LeaseAsk
}

/** The result for one entry. */
export interface SyncResult {
  /**
   * The totals of all processes.
   * - Fixed windows: the cells that were sent, in that order.
   * - Sliding windows: every cell that is not empty, from the first one of the window that ends with the newest cell sent (`cells` of the
   *   policy) to the running one, oldest first.
   * - Buckets: one cell with its `level`.
   */
  readonly cells: readonly Cell[]
  /** Milliseconds for which the key is still blocked, or 0. */
  readonly blocked: number
  /** The block is manual. */
  readonly manual?: true
  /**
   * The key's last reset, if the entry's units were counted before it (the entry's `epoch` is older or absent). Then the store wrote
   * nothing of the entry, and `cells` contain only units from after the reset.
   */
  readonly epoch?: number
  /** The answer to `lease`. */
  readonly lease?: LeaseReply
}

/** One sync, as a process sends it. */
export interface SyncRequest {
  readonly entries: readonly SyncEntry[]
  readonly blocks: readonly BlockChange[]
  /**
   * The time that the processes agree on, in milliseconds since the Unix epoch. It is present in heartbeats, and while it is far from the
   * store's clock: after a step of that clock the processes approach it slowly. Then a store uses it instead of its own clock, for the age
   * of cells and the end of blocks. Absent until the store has answered.
   */
  readonly time?: number
  /** Present in heartbeats. Without it the reply has no `heartbeat`. */
  readonly heartbeat?: HeartbeatRequest
}

/** The reply to a sync. */
export interface SyncReply {
  /** The store's clock while it handled the request, milliseconds since the Unix epoch. */
  readonly time: number
  /** In the order of `entries`. A result is undefined if its part failed and must be sent again. */
  readonly results: readonly (SyncResult | undefined)[]
  /** In the order of `blocks`: milliseconds for which the key is blocked after the change, or undefined if the change failed. */
  readonly blocks: readonly (number | undefined)[]
  readonly heartbeat?: HeartbeatReply
}
