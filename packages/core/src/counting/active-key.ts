import { IntervalShare } from './estimate.ts'
import { SyncedKey } from './synced-key.ts'

/** The state of a key beyond its record, once it is synced early, announced, refunded or blocked by an estimate. */
export class Active extends SyncedKey {
  /** Own units refunded in the running interval, and how many of them the store has acknowledged. */
  given = 0
  givenSent = 0
  /** Own net units in the running sync. */
  override flight = 0
  /** The cluster's total at the last sync, and own units in it. */
  total = 0
  ownThen = 0
  /** Units refunded by any process, as last received. */
  givenByAll = 0
  /** Others' units per millisecond. */
  rate = 0
  readonly share: IntervalShare = new IntervalShare()
  /** `failMode: 'share'`: own net units that may be allowed in this interval, and whether this limit still applies. */
  cap = 0
  capped = false
  /** `coordination: 'periodic'`: the estimated number of processes, and the last total that the running interval's key writes returned. */
  nodes = 1
  lastTotal = 0
  /** … own units taken when the running span began. */
  spanTaken = 0
  /** … and the limit for which the key was blocked: a higher limit of the key ends the block. */
  blockedFor: number = Number.POSITIVE_INFINITY
  /** `slidingCounter()`: the cluster's total of the interval before the running one. */
  previous = 0

  override landed(): void {
    this.flight = 0
  }

  /** Resets the counts, but keeps the rate and share of the key's traffic. */
  clear(): void {
    this.nextInterval(Number.NEGATIVE_INFINITY)
    this.previous = 0
  }

  /** Units that others probably took since the last sync. 0 before the first one. */
  expected(now: number): number {
    return this.rate === 0 ? 0 : this.rate * Math.max(0, now - this.syncedAt)
  }

  /**
   * Starts the counts of a new interval, but keeps the rate and share of the key's traffic.
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
    // Others began the interval at the same time, give or take a round trip.
    this.syncedAt = Math.max(this.syncedAt, begun)
  }
}

/** The processes over which a key's traffic is spread: the live ones, or more by this process's share of it. */
export function nodesOf(active: Active | undefined, live: number): number {
  return active === undefined ? live : Math.max(live, 1 / active.share.value(live))
}
