import { LeakyLevel } from './reference.ts'

/**
 * Whether a unit fitted, by the units that were really allowed and the window's own definition.
 * A limiter that rejects only by confirmed counts never rejects while a unit fits.
 */
export interface Room {
  /**
   * Whether a request of this cost fits. Call it for each request, before `took` or `rejected`. Times don't go back.
   *
   * @param node - the place of the process that got the request
   */
  fits(time: number, cost: number, node: number): boolean
  /** Records units that were allowed. */
  took(time: number, units: number, node: number): void
  /** Records a rejected request. */
  rejected?(node: number): void
  /** Returns the units in a bucket. */
  level?(time: number): number
}

/** An interval aligned to the Unix epoch. Units fit while less than the limit was allowed in it. */
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

/** The spans of a sliding window, and the capacity at which a key reopens. */
export interface BucketShape {
  /** Spans per interval. */
  readonly subWindows: number
  /** The part of the limit that must be free before a closed key opens again. */
  readonly reopenAt: number
}

/** The counts of a process in a window. */
interface NodeInWindow {
  /** Units that it allowed in each span of the window, and the most and the least of them that leave with the whole span. */
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
 * A sliding window of spans, each of several parts, as processes share it. Units leave with their part. If the limit is large, the
 * usual number of units of a span leaves with the whole span. Leaving units count in full, except for a small early release. A full
 * window stays closed for a process until a part of the limit is free again. A process that has rejected many requests then follows
 * whole spans.
 */
export class BucketRoom implements Room {
  readonly #limit: number
  readonly #nodes: () => number
  readonly #width: number
  readonly #subWindows: number
  readonly #parts: number
  readonly #byBucket: boolean
  readonly #opensAt: number
  /** Units of each part of the spans. Units that leave with their span are in its first part. */
  readonly #counts: Float64Array
  /** Units of each span that surely leave with the whole of it. */
  readonly #surely: Float64Array
  /** Units of each span, and of all of them. */
  readonly #totals: Float64Array
  #sum = 0
  /** The number of parts of the oldest span that have left, and the units that left with them. */
  #partsLeft = 0
  #left = 0
  readonly #perNode = new Map<number, NodeInWindow>()
  #newest = Number.NEGATIVE_INFINITY
  /** The fewest and the most processes at some time, because the others learn of a start or an end only later. */
  #fewest = Number.POSITIVE_INFINITY
  #most = 1

  /** @param nodes - returns the current number of processes */
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
      // A request that is too expensive does not close the key for cheaper ones, as for a cooldown.
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

  /** The number of a process's units that is usual for a span, if it counts `nodes` processes. */
  #usual({ sum }: NodeInWindow, nodes: number): number {
    return Math.floor((USUAL * Math.max(sum, this.#limit / nodes)) / this.#subWindows)
  }

  /** The part of the usual units that may be there when a part of the span begins, because each part adds some. */
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

  /** Opens the key for a process if enough is free. A process that has rejected many requests follows whole spans. */
  #reopenAt(node: NodeInWindow, time: number, used: number): void {
    const few = Math.max(2, (0.2 * this.#limit) / this.#most)
    if ((node.closed && node.rejected > few ? this.#usedWhole(time) : used) > this.#opensAt) return
    node.closed = false
    node.rejected = 0
  }

  /**
   * Removes the spans that have left the window, and opens the key for processes that had capacity at the end of a span. Returns
   * the running span.
   */
  #roll(time: number): number {
    // A clock that steps back leaves the window unchanged.
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

  /** The part of the running span that has passed. */
  #over(time: number): number {
    return Math.max(0, time / this.#width - this.#newest)
  }

  /** The place of the span that is leaving. */
  #oldest(): number {
    return (this.#newest - this.#subWindows) % this.#totals.length
  }

  /** Units in the window if spans leave as a whole. */
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
 * A bucket. When one more unit would not fit, it stays closed until a tenth of its size is free, and at least one unit. A bucket of
 * more than 20 units waits for a twentieth of the limit if that is more, but for half of its size at most.
 */
export class LeakyRoom implements Room {
  readonly #level: LeakyLevel
  readonly #most: number
  readonly #opensAt: number
  #closed = false

  /** @param most - the size of the bucket, in units */
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

/** The factor that makes units usual for a span of a process: it is applied to the mean of its spans, or of an even share of the limit. */
const USUAL = 1.25
/** The part of the limit that the oldest span, or part of a span, may release before it has passed. */
const EARLY_RELEASE = 0.02
/** The same for the units that are usual for a span, if the others leave with their part. */
const USUAL_RELEASE = 0.007
