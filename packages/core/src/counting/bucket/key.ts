import type { Ordinal } from '../../time/intervals.ts'
import { Share } from '../estimate.ts'
import { SyncedKey } from '../synced-key.ts'
import type { EarlyDrop } from './early-drop.ts'
import { Forecast } from './forecast.ts'
import { OwnCells } from './own-cells.ts'

/** An answer is late after this many average round trips and milliseconds. */
const LATE_ROUND_TRIPS = 3
const LATE_TIME = 1

/** Units that were counted for requests that wait, until the store has returned the level with them. */
export interface Unconfirmed {
  readonly units: number
  readonly ordinal: Ordinal
  /** When they were counted. */
  readonly at: number
  /** The level with them. Undefined if this process can't know whether the store has them. */
  confirmed(level: number | undefined, now: number): void
}

/** The state of a key's bucket beside its record. Times are of the monotonic clock. */
export class BucketKey extends SyncedKey {
  readonly cells: OwnCells = new OwnCells()
  readonly share: Share = new Share()
  readonly forecast: Forecast = new Forecast()
  /** With `earlyDrop` only. */
  readonly earlyDrop: EarlyDrop | undefined
  /** A full key is rejected until then, unless its limit rises above `closedFor`, the limit that it reached. */
  closedUntil: number = Number.NEGATIVE_INFINITY
  closedFor: number = Number.NEGATIVE_INFINITY
  /** Units of requests that wait, in the order in which they were counted. */
  unconfirmed: readonly Unconfirmed[] = []
  /** Average milliseconds to an answer. NaN before the first one. */
  #roundTrip = Number.NaN
  /** Units of all processes that the store had received by its last answer, and refunded ones among them. */
  heard = 0
  givenHeard = 0
  /** The store's cell of that answer. */
  heardIn: Ordinal = Number.NEGATIVE_INFINITY as Ordinal
  /** The store has lost counts of this key: whether the next sync carries all of them, and whether the last one did. */
  resend = false
  resent = false
  /** The store has lost counts: syncs carry the confirmed level until it has answered. */
  tellsLevel = false
  /** When the last answered sync that carried our level was sent. */
  toldAt: number = Number.NEGATIVE_INFINITY
  /** When units were last allowed without the store. */
  awayAt: number = Number.NEGATIVE_INFINITY
  /** `failMode: 'share'`: the level at `guessAt` if the others allow as much as they usually do. Undefined while the store answers. */
  guess: number | undefined
  guessAt = 0

  /** Whether the missing answer is most likely lost, and is needed only for the store's counts. */
  isLate(now: number): boolean {
    if (this.unconfirmed.length > 0 || this.tellsLevel || this.resend) return false
    return now >= this.sentAt + LATE_ROUND_TRIPS * this.#roundTrip + LATE_TIME
  }

  override setAway(away: boolean, running: Ordinal, now: number): void {
    super.setAway(away, running, now)
    this.awayAt = now
  }

  /** Whether it is rejected though a request may fit. A higher limit of the key opens it. */
  closed(limit: number, now: number): boolean {
    return now < this.closedUntil && limit <= this.closedFor
  }

  /** An answer has come. */
  answered(took: number): void {
    this.#roundTrip = Number.isNaN(this.#roundTrip) ? took : this.#roundTrip + (took - this.#roundTrip) / 8
  }

  constructor(earlyDrop: EarlyDrop | undefined) {
    super()
    this.earlyDrop = earlyDrop
  }
}
