import { SlidingCells } from '../../algorithms/sliding-window/cells.ts'
import { Share } from '../estimate.ts'

/** What a node keeps of a key in a sliding window beside its record. */
export class SlidingKey {
  readonly cells: SlidingCells = new SlidingCells()
  readonly share: Share = new Share()
  /** Its limit when it was last looked at. */
  limit: number = Number.POSITIVE_INFINITY
  /** What of the oldest bucket was released early when the key was last looked at. */
  early = 0
  /** The limit that it has reached; less than 0 while it is open. */
  #closedFor = Number.NEGATIVE_INFINITY
  /** The bucket up to which it was looked whether enough was free. */
  lookedAt = 0
  /** It was filled by a burst when it was closed. */
  burst = false
  /** The first part of the bucket in which it opened last because others had left as a whole: in a flood. */
  openedIn: number = Number.NEGATIVE_INFINITY
  /** Requests rejected here since it was last far from full. */
  rejected = 0
  sentAt: number = Number.NEGATIVE_INFINITY
  syncedAt: number = Number.NEGATIVE_INFINITY
  /** Whether an exchange has returned yet. */
  synced = false
  /** When the key was last found idle: the others' rate is measured from then on. */
  idleAt: number = Number.NEGATIVE_INFINITY
  /** Others' units per millisecond: units and time of the exchanges, each counting half of the next one. */
  rate = 0
  paceUnits = 0
  paceTime = 0
  /** Own units taken since the start, and at the last exchange. */
  ownTaken = 0
  ownThen = 0
  hello = false
  /** The store has lost counts of this key: the next exchange carries all of them. And whether the last one did. */
  resend = false
  resent = false
  announcedInFlight = false
  /** The part of the store that holds this key is away, though others answer: decided by `failMode` until it is back. */
  away = false
  /** The last part in which that was so: exceeding the limit in it starts no cooldown. */
  awayIn = -1
  /** `failMode: 'share'`: own units that may have been taken since the start, and whether that still holds. */
  cap = 0
  capped = false

  /** Reached its limit: rejected until enough of it is free again. A higher limit that it gets counts at once. */
  get closed(): boolean {
    return this.limit <= this.#closedFor
  }

  close(): void {
    this.#closedFor = this.limit
  }

  open(): void {
    this.#closedFor = Number.NEGATIVE_INFINITY
  }
}
