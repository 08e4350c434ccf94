import type { Ordinal } from '../../time/intervals.ts'
import { Share } from '../estimate.ts'
import type { EarlyDrop } from './early-drop.ts'
import { Forecast } from './forecast.ts'
import { OwnCells } from './own-cells.ts'
import type { Places } from './places.ts'

/** An answer is late after so many usual round trips and milliseconds. */
const LATE_ROUND_TRIPS = 3
const LATE_TIME = 1

/** What a node keeps of a key's bucket beside its record. Times are of the monotonic clock. */
export class BucketKey {
  readonly cells: OwnCells = new OwnCells()
  readonly share: Share = new Share()
  readonly forecast: Forecast = new Forecast()
  /** With `earlyDrop` only. */
  readonly earlyDrop: EarlyDrop | undefined
  /** What was full is rejected until this, while its limit is at most that which it has reached. */
  closedUntil: number = Number.NEGATIVE_INFINITY
  closedFor: number = Number.NEGATIVE_INFINITY
  /** Of requests that wait; undefined while none do. */
  places: Places | undefined
  sentAt: number = Number.NEGATIVE_INFINITY
  syncedAt: number = Number.NEGATIVE_INFINITY
  /** Usual milliseconds to an answer; NaN while there was none. */
  #roundTrip = Number.NaN
  /** Units of all nodes that the store had heard of at last, and refunded ones among them. */
  heard = 0
  givenHeard = 0
  /** The store's cell in which that was so. */
  heardIn: Ordinal = Number.NEGATIVE_INFINITY as Ordinal
  /** Hot elsewhere, and new here: its first request is exchanged at once. */
  hello = false
  /** The store has lost counts of this key: the next exchange carries all of them. And whether the last one did. */
  resend = false
  resent = false
  /** The store has lost counts: until it has answered it is told what is known to be in the bucket. */
  tellsLevel = false
  /** When it was asked last that has an answer and was told so. */
  toldAt: number = Number.NEGATIVE_INFINITY
  announcedInFlight = false
  /** The part of the store that holds this key is away, though others answer: decided by `failMode` until it is back. */
  away = false
  /** When units were last allowed without the store. */
  awayAt: number = Number.NEGATIVE_INFINITY
  /**
   * `failMode: 'share'`: what would be in the bucket if the others allowed as much as they usually do, at `guessAt`. Undefined
   * while the store tells.
   */
  guess: number | undefined
  guessAt = 0

  /** Whether the answer that is waited for has most likely been lost, and nothing hangs on it but what the store knows. */
  isLate(now: number): boolean {
    if (this.places !== undefined || this.tellsLevel || this.resend) return false
    return now >= this.sentAt + LATE_ROUND_TRIPS * this.#roundTrip + LATE_TIME
  }

  /** Whether it is rejected though a request may fit. A higher limit that the key gets counts at once. */
  closed(limit: number, now: number): boolean {
    return now < this.closedUntil && limit <= this.closedFor
  }

  /** An answer has come. */
  answered(took: number): void {
    this.#roundTrip = Number.isNaN(this.#roundTrip) ? took : this.#roundTrip + (took - this.#roundTrip) / 8
  }

  constructor(earlyDrop: EarlyDrop | undefined) {
    this.earlyDrop = earlyDrop
  }
}
