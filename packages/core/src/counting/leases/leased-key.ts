import type { LeaseAsk } from '../../store/leases/ask.ts'
import type { Lease } from '../../store/leases/lease.ts'
import { WaitingRequests } from './waiting-requests.ts'

/** Round trips and milliseconds within which others receive a notice and answer it. */
const HEARD_ROUND_TRIPS = 2
const HEARD_TIME = 2

/** The quota that a process took ahead for one key, and the requests that wait for more. Times are of the monotonic clock. */
export abstract class LeasedKey {
  /** The highest limit by which units were requested: requests of a lower one may not use all of them. */
  askedBy = 0
  /** The lease that requests are counted in. */
  current: Lease
  readonly waiting: WaitingRequests = new WaitingRequests()
  /** Requests with a number below it have waited for units that other processes return. */
  recalled = 0
  /** No units are requested for waiting requests until then, unless the store announces some: other processes return theirs. */
  recallUntil: number = Number.NEGATIVE_INFINITY
  /** The store has no units for this key until then, unless it announces some. */
  emptyUntil: number = Number.NEGATIVE_INFINITY
  /** The number of rule changes that it has taken over. */
  changes = 0
  sentAt: number = Number.NEGATIVE_INFINITY
  /** The store needs a report of it, even without changes. */
  report = false
  /** With this many remaining units or fewer, more are requested. */
  low = 0
  /** Milliseconds to an answer. */
  roundTrip = 0
  /** Units that other processes used, by the store's last answer. */
  others = 0
  /** When the store's last answer about `others` came. */
  heardAt: number = Number.NEGATIVE_INFINITY
  /** The counts of the current lease that were sent to the store. */
  protected saidTaken = 0
  protected saidGiven = 0
  protected saidReturned = 0

  constructor(current: Lease) {
    this.current = current
  }

  /** The lease of the next interval, if it was requested. */
  abstract readonly next: Lease | undefined

  /** Whether the store's count of this process's units is wrong, so that it must be corrected soon. */
  abstract get owes(): boolean

  /** Units that this process has, in use or not. */
  get hold(): number {
    return this.current.granted - this.current.returned
  }

  /** Whether the store has no units for a request, until `emptyUntil`. */
  isEmptyFor(_cost: number, now: number): boolean {
    return now < this.emptyUntil
  }

  /** The store may have units from `now` on. */
  mayHave(now: number): void {
    this.emptyUntil = Math.min(this.emptyUntil, now)
  }

  /** Whether no units are requested for waiting requests. Timers and clocks round. */
  pauses(now: number): boolean {
    return now < this.recallUntil - 1
  }

  /** Used units that were not sent to the store. Negative if more were refunded. */
  get untold(): number {
    const { taken, given } = this.current
    return taken - this.saidTaken - (given - this.saidGiven)
  }

  /** Whether the store lacks used or returned units of this process. */
  get unsaid(): boolean {
    const { taken, given, returned } = this.current
    return taken !== this.saidTaken || given !== this.saidGiven || returned !== this.saidReturned
  }

  /**
   * Takes the others' use from the store's answer. Not while a request is in flight, because the two counts would be of different moments.
   */
  heardUsed({ seq, taken, given, cleared }: LeaseAsk, now: number): void {
    const { heard, used } = this.current
    if (seq !== heard) return
    this.others = Math.max(0, used - (taken - given - cleared))
    this.heardAt = now
  }

  /** All counts were sent to the store. */
  said(): void {
    const { taken, given, returned } = this.current
    this.saidTaken = taken
    this.saidGiven = given
    this.saidReturned = returned
    this.report = false
  }

  /** Continues with a lease that the store has no counts of. */
  protected begin(lease: Lease): void {
    this.current = lease
    this.saidTaken = this.saidGiven = this.saidReturned = this.others = 0
    this.heardAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Requests nothing until others have received the announcement, and could request or return units.
   *
   * @param more milliseconds more
   */
  letOthers(now: number, more = 0): void {
    this.recallUntil = now + HEARD_ROUND_TRIPS * this.roundTrip + HEARD_TIME + more
  }
}
