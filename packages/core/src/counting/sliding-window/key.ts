import { SlidingCells } from '../../algorithms/sliding-window/cells.ts'
import { Share } from '../estimate.ts'
import { SyncedKey } from '../synced-key.ts'

/** The state of a key's sliding window beside its record. */
export class SlidingKey extends SyncedKey {
  readonly cells: SlidingCells = new SlidingCells()
  readonly share: Share = new Share()
  /** The limit at the last update. */
  limit: number = Number.POSITIVE_INFINITY
  /** Units of the oldest sub-window that were released early at the last update. */
  early = 0
  /** The limit that it has reached. Negative while it is open. */
  #closedFor = Number.NEGATIVE_INFINITY
  /** The sub-window up to which `reopen` has checked for free units. */
  lookedAt = 0
  /** A burst had filled it when it was closed. */
  burst = false
  /** The first part of the sub-window in which it last opened because whole sub-windows had left: in a flood. */
  openedIn: number = Number.NEGATIVE_INFINITY
  /** Requests rejected here since it was last far below its limit. */
  rejected = 0
  /** Whether a sync has returned yet. */
  synced = false
  /** When the key was last found idle: the others' rate is measured from then on. */
  idleAt: number = Number.NEGATIVE_INFINITY
  /** Others' units per millisecond: units and time of the syncs, each counting half of the next one. */
  rate = 0
  paceUnits = 0
  paceTime = 0
  /** Own units taken since the start, and at the last sync. */
  ownTaken = 0
  ownThen = 0
  /** The store has lost counts of this key: whether the next sync carries all of them, and whether the last one did. */
  resend = false
  resent = false
  /** `failMode: 'share'`: own units that may have been taken since the start, and whether this limit still applies. */
  cap = 0
  capped = false

  /** Whether it reached its limit and is rejected until enough of it is free again. A higher limit of the key opens it. */
  get closed(): boolean {
    return this.limit <= this.#closedFor
  }

  override landed(): void {
    this.cells.landed()
  }

  close(): void {
    this.#closedFor = this.limit
  }

  open(): void {
    this.#closedFor = Number.NEGATIVE_INFINITY
  }
}
