import type { LeaseAsk } from '../store/leases/ask.ts'
import type { Lease } from '../store/leases/lease.ts'
import { WaitingRequests } from './waiting-requests.ts'

/** Within so many round trips and milliseconds others have heard of something and answered it. */
const HEARD_ROUND_TRIPS = 2
const HEARD_TIME = 2

/** What a node has taken ahead of one key, and who waits for more. Times are of the monotonic clock. */
export abstract class LeasedKey {
  /** The highest limit by which units were asked for: requests of a lower one may not use all that is held. */
  askedBy = 0
  /** The lease that requests are counted in. */
  current: Lease
  readonly waiting: WaitingRequests = new WaitingRequests()
  /** Requests with a number below it have waited for what other nodes give back. */
  recalled = 0
  /** Requests that wait are not asked for until then, unless the store says that it has something: other nodes give back. */
  recallUntil: number = Number.NEGATIVE_INFINITY
  /** The store has nothing for this key until then, or until something else is heard. */
  emptyUntil: number = Number.NEGATIVE_INFINITY
  /** How many changes of the rule it goes by. */
  changes = 0
  sentAt: number = Number.NEGATIVE_INFINITY
  /** The store wants to hear of it, whether or not there is anything new. */
  report = false
  /** So few units left are few: more are asked for. */
  low = 0
  /** Milliseconds to an answer. */
  roundTrip = 0
  /** Units that other nodes used, as far as the store knew. */
  others = 0
  /** When the store's last answer came that `others` is by. */
  heardAt: number = Number.NEGATIVE_INFINITY
  /** What the store has been told of the current lease. */
  protected saidTaken = 0
  protected saidGiven = 0
  protected saidReturned = 0

  constructor(current: Lease) {
    this.current = current
  }

  /** Units used that the store was not told of; less than 0 where more were given back. */
  get untold(): number {
    const { taken, given } = this.current
    return taken - this.saidTaken - (given - this.saidGiven)
  }

  /** Whether the store lacks something of what this node has used or given back. */
  get unsaid(): boolean {
    const { taken, given, returned } = this.current
    return taken !== this.saidTaken || given !== this.saidGiven || returned !== this.saidReturned
  }

  /** The store has answered: what it knew of all nodes without what it was told of this one. While an ask is under way, neither tells alone. */
  heardUsed({ seq, taken, given, cleared }: LeaseAsk, now: number): void {
    const { heard, used } = this.current
    if (seq !== heard) return
    this.others = Math.max(0, used - (taken - given - cleared))
    this.heardAt = now
  }

  /** The store is told of all. */
  said(): void {
    const { taken, given, returned } = this.current
    this.saidTaken = taken
    this.saidGiven = given
    this.saidReturned = returned
    this.report = false
  }

  /** Goes on with a lease that the store was told nothing of. */
  protected begin(lease: Lease): void {
    this.current = lease
    this.saidTaken = this.saidGiven = this.saidReturned = this.others = 0
    this.heardAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Asks for nothing until others have heard that there is something, and could ask for it or give it back.
   *
   * @param more milliseconds more
   */
  letOthers(now: number, more = 0): void {
    this.recallUntil = now + HEARD_ROUND_TRIPS * this.roundTrip + HEARD_TIME + more
  }
}
