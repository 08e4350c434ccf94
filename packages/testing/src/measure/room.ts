import { LeakyLevel } from './reference.ts'

/**
 * Whether there was room for a unit, by the true counts and the window's own definition. A limiter that rejects
 * only what is known to exceed the limit never rejects while there is room.
 */
export interface Room {
  /**
   * Whether a request of this cost fits; to be asked for each request, before `took` or `rejected`. Times don't go back.
   *
   * @param node - the place of the node that it came to
   */
  fits(time: number, cost: number, node: number): boolean
  /** Units were really allowed. */
  took(time: number, units: number, node: number): void
  /** A request was rejected. */
  rejected?(node: number): void
  /** Units in a bucket. */
  level?(time: number): number
}

/** An interval aligned to the epoch has room while less than the limit was allowed in it. */
export class FixedRoom implements Room {
  readonly #limit: number
  readonly #interval: number
  #end = Number.NEGATIVE_INFINITY
  #used = 0

  constructor(limit: number, interval: number) {
    this.#limit = limit
    this.#interval = interval
  }

  fits(time: number, cost: number): boolean {
    this.#roll(time)
    return this.#used + cost <= this.#limit
  }

  took(time: number, units: number): void {
    this.#roll(time)
    this.#used += units
  }

  #roll(time: number): void {
    if (time < this.#end) return
    this.#end = (Math.floor(time / this.#interval) + 1) * this.#interval
    this.#used = 0
  }
}

/** How a sliding window is cut and reopened. */
export interface BucketShape {
  /** Buckets per interval. */
  readonly subWindows: number
  /** A key that was closed opens again when so large a part of the limit is free. */
  readonly reopenAt: number
}

/** The counts of a node in a window. */
interface NodeInWindow {
  /** Units that it allowed in each bucket of the window, and how many of them leave with the whole bucket, at most and at least. */
  readonly own: Float64Array
  readonly whole: Float64Array
  readonly surely: Float64Array
  /** Units that it allowed in the window. */
  sum: number
  newest: number
  closed: boolean
  rejected: number
}

/**
 * A sliding window of subWindows, each of several parts, as nodes share it. Units leave with their part; of large limits what is usual for
 * a bucket leaves with the whole of it. What leaves counts in full but for a small early release. Once there is no room, a node stays
 * closed until a part of the limit is free again; one that has rejected many goes by whole subWindows then.
 */
export class BucketRoom implements Room {
  readonly #limit: number
  readonly #nodes: () => number
  readonly #width: number
  readonly #subWindows: number
  readonly #parts: number
  readonly #byBucket: boolean
  readonly #opensAt: number
  /** Units of each part of the subWindows; those that leave with the bucket are in its first one. */
  readonly #counts: Float64Array
  /** Those of each bucket that surely leave with the whole of it. */
  readonly #surely: Float64Array
  /** Units of each bucket, and of all of them. */
  readonly #totals: Float64Array
  #sum = 0
  /** How many parts of the oldest bucket have left, and the units that left with them. */
  #partsLeft = 0
  #left = 0
  readonly #perNode = new Map<number, NodeInWindow>()
  #newest = Number.NEGATIVE_INFINITY
  /** How few and how many nodes there were at some time: who comes and goes is not known at once. */
  #fewest = Number.POSITIVE_INFINITY
  #most = 1

  /** @param nodes - how many there are now */
  constructor(limit: number, interval: number, shape: BucketShape, nodes: () => number) {
    this.#limit = limit
    this.#nodes = nodes
    this.#subWindows = shape.subWindows
    this.#width = interval / shape.subWindows
    this.#parts = 1
    while (2 * this.#parts <= 32 && 2 * this.#parts * shape.subWindows <= 960 && this.#width / (2 * this.#parts) >= 25) this.#parts *= 2
    this.#byBucket = this.#parts > 1 && limit > 200
    this.#opensAt = limit - Math.max(1, shape.reopenAt * limit)
    this.#counts = new Float64Array((shape.subWindows + 1) * this.#parts)
    this.#totals = new Float64Array(shape.subWindows + 1)
    this.#surely = new Float64Array(shape.subWindows + 1)
  }

  fits(time: number, cost: number, place: number): boolean {
    this.#roll(time)
    const node = this.#node(place)
    const nodes = this.#nodes()
    this.#fewest = Math.min(this.#fewest, nodes)
    this.#most = Math.max(this.#most, nodes)
    const used = this.#used(time)
    this.#reopenAt(node, time, used)
    if (used + cost > this.#limit) {
      // As with a cooldown: a request that is too expensive closes nothing for those that fit.
      if (used + Math.min(1, cost) > this.#limit) node.closed = true
      return false
    }
    return !node.closed
  }

  took(time: number, units: number, place: number): void {
    const bucket = this.#roll(time)
    const node = this.#node(place)
    const at = bucket % node.own.length
    const part = Math.floor((time / this.#width - bucket) * this.#parts)
    let whole = 0
    if (this.#byBucket) {
      const surely = Math.min(units, Math.max(0, this.#usualBy(node, part) - (node.surely[at] as number)))
      node.surely[at] = (node.surely[at] as number) + surely
      this.#surely[at] = (this.#surely[at] as number) + surely
      whole = part === 0 ? units : Math.min(units, Math.max(0, this.#usual(node, this.#fewest) - (node.whole[at] as number)))
    }
    node.own[at] = (node.own[at] as number) + units
    node.sum += units
    node.whole[at] = (node.whole[at] as number) + whole
    this.#add(bucket, 0, whole)
    this.#add(bucket, Math.max(0, Math.min(this.#parts - 1, part)), units - whole)
  }

  rejected(place: number): void {
    this.#node(place).rejected++
  }

  /** How many units of a node are usual for a bucket, if it knows of so many nodes. */
  #usual({ sum }: NodeInWindow, nodes: number): number {
    return Math.floor((USUAL * Math.max(sum, this.#limit / nodes)) / this.#subWindows)
  }

  /** How many of them are so when a part of the bucket begins: each part brings some. */
  #usualBy(node: NodeInWindow, part: number): number {
    const whole = this.#usual(node, this.#most)
    return Math.floor(Math.min(whole, 1 + (whole * part) / this.#parts))
  }

  #add(bucket: number, part: number, units: number): void {
    const place = bucket % this.#totals.length
    const at = place * this.#parts + part
    this.#counts[at] = (this.#counts[at] as number) + units
    this.#totals[place] = (this.#totals[place] as number) + units
    this.#sum += units
  }

  #node(place: number): NodeInWindow {
    const size = this.#totals.length
    let node = this.#perNode.get(place)
    if (node === undefined) {
      const [own, whole, surely] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)]
      node = { own, whole, surely, sum: 0, newest: this.#newest, closed: false, rejected: 0 }
      this.#perNode.set(place, node)
    }
    node.newest = Math.max(node.newest, this.#newest - size)
    while (node.newest < this.#newest) {
      node.newest++
      const at = node.newest % size
      node.sum -= node.own[at] as number
      node.own[at] = 0
      node.whole[at] = 0
      node.surely[at] = 0
    }
    return node
  }

  /** A node goes by whole subWindows if it has rejected many. */
  #reopenAt(node: NodeInWindow, time: number, used: number): void {
    const few = Math.max(2, (0.2 * this.#limit) / this.#most)
    if ((node.closed && node.rejected > few ? this.#usedWhole(time) : used) > this.#opensAt) return
    node.closed = false
    node.rejected = 0
  }

  /** Empties what has left, and opens the nodes whose key had room when a bucket had left. Returns the running bucket. */
  #roll(time: number): number {
    // A clock that steps back leaves the window where it was.
    const bucket = Math.max(Math.floor(time / this.#width), this.#newest)
    this.#newest = Math.max(this.#newest, bucket - this.#totals.length)
    while (this.#newest < bucket) {
      this.#newest++
      const place = this.#newest % this.#totals.length
      this.#sum -= this.#totals[place] as number
      this.#totals[place] = 0
      this.#surely[place] = 0
      this.#counts.fill(0, place * this.#parts, (place + 1) * this.#parts)
      this.#partsLeft = 0
      this.#left = 0
      const begin = this.#newest * this.#width
      const used = this.#used(begin)
      for (const node of this.#perNode.values()) if (node.closed) this.#reopenAt(node, begin, used)
    }
    return bucket
  }

  /** How much of the running bucket is over. */
  #over(time: number): number {
    return Math.max(0, time / this.#width - this.#newest)
  }

  /** The place of the bucket that leaves. */
  #oldest(): number {
    return (this.#newest - this.#subWindows) % this.#totals.length
  }

  /** Units in the window if subWindows leave as a whole. */
  #usedWhole(time: number): number {
    return this.#sum - Math.min(EARLY_RELEASE * this.#limit, (this.#totals[this.#oldest()] as number) * this.#over(time))
  }

  #used(time: number): number {
    const from = this.#oldest() * this.#parts
    const over = this.#over(time)
    const edge = Math.min(this.#parts - 1, Math.floor(over * this.#parts))
    for (; this.#partsLeft < edge; this.#partsLeft++) {
      if (!this.#byBucket || this.#partsLeft > 0) this.#left += this.#counts[from + this.#partsLeft] as number
    }
    const early = this.#byBucket
      ? Math.min(USUAL_RELEASE * this.#limit, (this.#surely[this.#oldest()] as number) * over)
      : Math.min(EARLY_RELEASE * this.#limit, (this.#counts[from + edge] as number) * (over * this.#parts - edge))
    return this.#sum - this.#left - early
  }
}

/**
 * A bucket. Once a unit more would be too much it stays closed until a tenth of what it holds is free, and at least one unit. Where it
 * holds more than 20 units it is a twentieth of the limit, if that is more; half of the bucket at most.
 */
export class LeakyRoom implements Room {
  readonly #level: LeakyLevel
  readonly #most: number
  readonly #opensAt: number
  #closed = false

  /** @param most - units that the bucket holds */
  constructor(limit: number, interval: number, most: number) {
    this.#level = new LeakyLevel(limit, interval)
    this.#most = most
    this.#opensAt = most - Math.max(1, most <= 20 ? 0.1 * most : Math.min(most / 2, Math.max(0.1 * most, limit / 20)))
  }

  fits(time: number, cost: number): boolean {
    const level = this.#level.at(time)
    const slack = this.#most * 1e-9
    if (this.#closed && level <= this.#opensAt - slack) this.#closed = false
    if (level + Math.min(1, cost) > this.#most + slack) this.#closed = true
    return !this.#closed && level + cost <= this.#most - slack
  }

  took(time: number, units: number): void {
    this.#level.add(time, units)
  }

  level(time: number): number {
    return this.#level.at(time)
  }
}

/** So many times its mean, or that of an even part of the limit, is usual for a bucket of a node. */
const USUAL = 1.25
/** Part of the limit that the oldest bucket, or part of a bucket, may release before it has passed. */
const EARLY_RELEASE = 0.02
/** The same of what is usual for a bucket, where the rest leaves with its part. */
const USUAL_RELEASE = 0.007
