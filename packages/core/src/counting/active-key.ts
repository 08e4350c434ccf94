import { IntervalShare } from './estimate.ts'

/** What a key needs beyond its record once it is exchanged early, announced, refunded or blocked by an estimate. */
export class Active {
  /** Own units refunded in the running interval, and how many of them the store has acknowledged. */
  given = 0
  givenSent = 0
  /** Own net units in the exchange under way. */
  flight = 0
  /** When the last exchange was sent and returned, on the monotonic clock. */
  sentAt: number = Number.NEGATIVE_INFINITY
  syncedAt: number = Number.NEGATIVE_INFINITY
  /** The cluster's total at the last exchange, and own units in it. */
  total = 0
  ownThen = 0
  /** Units refunded by anybody, as last told. */
  givenByAll = 0
  /** Others' units per millisecond. */
  rate = 0
  /** An announcement came while an exchange was under way: its total may be newer than the reply's. */
  announcedInFlight = false
  /** Announced as hot before this node took part: the first request is exchanged at once. */
  hello = false
  /** The part of the store that holds this key is away, though others answer: decided by `failMode` until it is back. */
  away = false
  /** The last interval in which that was so: exceeding the limit in it starts no cooldown. */
  awayIn = -1
  readonly share: IntervalShare = new IntervalShare()
  /** `failMode: 'share'`: own net units that may be allowed in this interval, and whether that still holds. */
  cap = 0
  capped = false
  /** `coordination: 'periodic'`: the estimate of nodes, and what the running interval's writes returned last. */
  nodes = 1
  lastTotal = 0
  /** … own units taken when the running span began. */
  spanTaken = 0
  /** … and the limit that the key was blocked for exceeding: a higher one that it gets counts at once. */
  blockedFor: number = Number.POSITIVE_INFINITY
  /** `slidingCounter()`: the cluster's total of the interval before the running one. */
  previous = 0

  /** An exchange is sent, with so many own net units that the store has not acknowledged. */
  exchange(now: number, flight: number): void {
    this.flight = flight
    this.sentAt = now
    this.announcedInFlight = false
    this.hello = false
  }

  /** The key was reset: nothing is counted any more, and what was learned about its traffic stays. */
  clear(): void {
    this.nextInterval(Number.NEGATIVE_INFINITY)
    this.previous = 0
  }

  /** Units that others are expected to have taken since the last exchange; before the first one nothing is known of them. */
  expected(now: number): number {
    return this.rate === 0 ? 0 : this.rate * Math.max(0, now - this.syncedAt)
  }

  /**
   * Starts the counts anew, and keeps what was learned about the key's traffic.
   *
   * @param begun when the running interval began, on the monotonic clock
   */
  nextInterval(begun: number): void {
    this.share.endInterval()
    this.given = 0
    this.givenSent = 0
    this.flight = 0
    this.total = 0
    this.ownThen = 0
    this.givenByAll = 0
    this.announcedInFlight = false
    this.hello = false
    this.capped = false
    this.lastTotal = 0
    this.spanTaken = 0
    // Others began the interval when this node did, give or take a round trip.
    this.syncedAt = Math.max(this.syncedAt, begun)
  }
}

/** The nodes that a key's traffic is spread over: as many as are alive, or more by this node's share of it. */
export function nodesOf(active: Active | undefined, live: number): number {
  return active === undefined ? live : Math.max(live, 1 / active.share.value(live))
}
