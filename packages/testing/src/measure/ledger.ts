import { type Reference, SlidingLog } from './reference.ts'
import type { Room } from './room.ts'

/** Measured counts of one key in one interval of the store's clock, in units unless stated otherwise. */
export interface IntervalMeasure {
  readonly key: string
  /** Position of the interval. 0 is the first one, warm-up included. */
  readonly index: number
  /** Requests that arrived. */
  requests: number
  /** Units of these requests. */
  offered: number
  /** Units that the cluster allowed. */
  allowed: number
  /** Units that an exact limiter would have allowed. */
  exact: number
  /** Requests that were rejected. */
  rejected: number
  /** Requests that were allowed after a wait. */
  waited: number
  /** Requests that were rejected although an exact limiter with the same requests would have allowed them. */
  falselyRejected: number
  /** Requests that were rejected although the units that were allowed left capacity for them. */
  rejectedWithRoom: number
  /**
   * Requests that were rejected although no more than the limit, themselves included, was offered in the last interval's length.
   * Sliding windows only.
   */
  rejectedUnderLimit: number
  /** The most units allowed in any stretch of an interval's length that ends in this interval. */
  worstWindow: number
  /** The most units in the bucket above its size. Buckets only. */
  debt: number
  /** The most units by which the store's level was above the level of the units that were allowed. Buckets only. */
  toldTooMuch: number
  /** Key writes and changes of blocks that processes sent for the key. */
  operations: number
  /** Whether the store was down at some time of the interval. */
  outage: boolean
  /**
   * Milliseconds from the first request beyond the limit until a process rejects: the mean over processes. Undefined if there was
   * no such request.
   */
  blockMean: number | undefined
  /** The same for the slowest process. */
  blockSlowest: number | undefined
  /** Units that the store had for the interval after all messages had arrived. Undefined if they were not read. */
  stored: number | undefined
}

/** A request from its arrival to its decision. */
export interface Offer {
  readonly interval: IntervalMeasure
  readonly time: number
  readonly cost: number
  readonly exact: boolean
  readonly room: boolean
  readonly underLimit: boolean
  /** The place of the process that got it. */
  readonly node: number
}

export interface LedgerOptions {
  readonly limit: number
  readonly interval: number
  /** The size of a bucket, or the limit of a window. */
  readonly most: number
  readonly reference: Reference
  readonly room: Room
  /** Whether to measure `rejectedUnderLimit`, which needs a log of all requests. */
  readonly logDemand: boolean
  /** Number of the interval with index 0. */
  readonly first: number
}

/** All measurements of one key. */
export class Ledger {
  readonly key: string
  readonly intervals: IntervalMeasure[] = []
  /** The time of the first request beyond the limit in the running interval. `undefined` before. */
  exceededAt: number | undefined
  readonly #options: LedgerOptions
  readonly #taken: SlidingLog
  readonly #demand: SlidingLog | undefined
  #current: IntervalMeasure
  #end = Number.NEGATIVE_INFINITY

  constructor(key: string, options: LedgerOptions) {
    this.key = key
    this.#options = options
    this.#taken = new SlidingLog(options.interval)
    this.#demand = options.logDemand ? new SlidingLog(options.interval) : undefined
    this.#current = this.at(options.first * options.interval)
  }

  /** The interval that contains a time of the store's clock. */
  at(time: number): IntervalMeasure {
    return this.byIndex(Math.max(0, Math.floor(time / this.#options.interval) - this.#options.first))
  }

  byIndex(index: number): IntervalMeasure {
    while (this.intervals.length <= index) this.intervals.push(emptyInterval(this.key, this.intervals.length))
    return this.intervals[index] as IntervalMeasure
  }

  /** The running interval. */
  get current(): IntervalMeasure {
    return this.#current
  }

  /** The end of the running interval. */
  get end(): number {
    return this.#end
  }

  /** Records a request that arrives. Times are of the store's clock. */
  offer(time: number, cost: number, node: number): Offer {
    if (time >= this.#end) this.#roll(time)
    const interval = this.#current
    const { limit, reference, room } = this.#options
    if (this.exceededAt === undefined && interval.allowed + cost > limit) this.exceededAt = time
    interval.requests++
    interval.offered += cost
    const exact = reference.allows(time, cost)
    if (exact) interval.exact += cost
    let underLimit = false
    if (this.#demand !== undefined) {
      this.#demand.add(time, cost)
      underLimit = this.#demand.usedAt(time) <= limit
    }
    return { interval, time, cost, exact, room: room.fits(time, cost, node), underLimit, node }
  }

  /**
   * Records the decision about an offer.
   *
   * @param at the time of the decision, if the request waited: it counts in the interval of that time
   */
  decided(offer: Offer, allowed: boolean, at?: number): void {
    const { cost } = offer
    const time = at ?? offer.time
    const interval = at === undefined ? offer.interval : this.at(at)
    if (allowed) {
      if (at !== undefined && at > offer.time) interval.waited++
      interval.allowed += cost
      this.#options.room.took(time, cost, offer.node)
      this.#taken.add(time, cost)
      const window = this.#taken.usedAt(time)
      if (window > interval.worstWindow) interval.worstWindow = window
      const debt = (this.#options.room.level?.(time) ?? 0) - this.#options.most
      if (debt > interval.debt) interval.debt = debt
      return
    }
    interval.rejected++
    this.#options.room.rejected?.(offer.node)
    if (offer.exact) interval.falselyRejected++
    if (offer.room) interval.rejectedWithRoom++
    if (offer.underLimit) interval.rejectedUnderLimit++
  }

  /** Records the level of a bucket in a reply from the store. */
  told(time: number, level: number): void {
    const beyond = level - (this.#options.room.level?.(time) ?? level)
    const interval = this.at(time)
    if (beyond > interval.toldTooMuch) interval.toldTooMuch = beyond
  }

  #roll(time: number): void {
    this.#current = this.at(time)
    this.#end = (Math.floor(time / this.#options.interval) + 1) * this.#options.interval
    this.exceededAt = undefined
  }
}

function emptyInterval(key: string, index: number): IntervalMeasure {
  return {
    key,
    index,
    requests: 0,
    offered: 0,
    allowed: 0,
    exact: 0,
    rejected: 0,
    waited: 0,
    falselyRejected: 0,
    rejectedWithRoom: 0,
    rejectedUnderLimit: 0,
    worstWindow: 0,
    debt: 0,
    toldTooMuch: 0,
    operations: 0,
    outage: false,
    blockMean: undefined,
    blockSlowest: undefined,
    stored: undefined,
  }
}
