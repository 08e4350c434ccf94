import { type Reference, SlidingLog } from './reference.ts'
import type { Room } from './room.ts'

/** Measured counts of one key in one interval of the store's clock, in units unless stated otherwise. */
export interface IntervalMeasure {
  readonly key: string
  /** Position of the interval; 0 is the first one, warm-up included. */
  readonly index: number
  /** Requests that arrived. */
  requests: number
  /** Units that they asked for. */
  offered: number
  /** Units that the cluster allowed. */
  allowed: number
  /** Units that an exact limiter would have allowed. */
  exact: number
  /** Requests that were rejected. */
  rejected: number
  /** Requests that were allowed after a wait. */
  waited: number
  /** Requests that were rejected though an exact limiter, offered the same requests, would have allowed them. */
  falselyRejected: number
  /** Requests that were rejected while the units really allowed left room for them. */
  rejectedWithRoom: number
  /** Requests that were rejected though, themselves included, no more than the limit was offered in the interval's length before; sliding windows only. */
  rejectedUnderLimit: number
  /** The most units allowed in any stretch of an interval's length that ends in this interval. */
  worstWindow: number
  /** The most units that were in the bucket beyond what it may hold; buckets only. */
  debt: number
  /** Units by which the store's level was above that of what was really allowed, at most; buckets only. */
  toldTooMuch: number
  /** Entries of syncs and changes of blocks that nodes sent for the key. */
  operations: number
  /** Whether the store was away at some time of the interval. */
  outage: boolean
  /** Mean over nodes: milliseconds from the first request beyond the limit to where the node rejects; undefined if there was none. */
  blockMean: number | undefined
  /** The same for the slowest node. */
  blockSlowest: number | undefined
  /** Units that the store had for the interval after it had come to rest; undefined when not asked. */
  stored: number | undefined
}

/** A request as it arrived, until it is decided. */
export interface Offer {
  readonly interval: IntervalMeasure
  readonly time: number
  readonly cost: number
  readonly exact: boolean
  readonly room: boolean
  readonly underLimit: boolean
  /** The place of the node that it came to. */
  readonly node: number
}

export interface LedgerOptions {
  readonly limit: number
  readonly interval: number
  /** The size of a bucket; the limit of windows. */
  readonly most: number
  readonly reference: Reference
  readonly room: Room
  /** Whether to measure `rejectedUnderLimit`: it takes a log of all that is offered. */
  readonly logDemand: boolean
  /** Number of the interval that has index 0. */
  readonly first: number
}

/** Everything that is measured of one key. */
export class Ledger {
  readonly key: string
  readonly intervals: IntervalMeasure[] = []
  /** When the first request beyond the limit arrived in the running interval; `undefined` before. */
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

  /** The interval that holds a time of the store's clock. */
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

  /** When the running interval ends. */
  get end(): number {
    return this.#end
  }

  /** A request arrives. Times are of the store's clock. */
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
   * Notes the outcome of an offer.
   *
   * @param at when a request was decided that waited: it counts in the interval that runs then
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

  /** The store says so many units are in the bucket. */
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
