import { LeakyLevel } from './reference.ts'

/**
 * Whether there was room for a unit, by the true counts and the window's own definition. A limiter that refuses
 * only what is known to exceed the limit never refuses while there is room.
 */
export interface Room {
  /**
   * Whether a request of this cost fits; to be asked for each request, before `took` or `refused`. Times don't go back.
   *
   * @param node - the place of the node that it came to
   */
  fits(time: number, cost: number, node: number): boolean
  /** Units were really admitted. */
  took(time: number, units: number, node: number): void
  /** A request was refused. */
  refused?(node: number): void
  /** Units in a bucket. */
  level?(time: number): number
}

/** An interval aligned to the epoch has room while less than the limit was admitted in it. */
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
  readonly buckets: number
  /** A key that was closed opens again when so large a part of the limit is free. */
  readonly reopen: number
}

/** What a node has done to a window. */
interface NodeInWindow {
  /** Units that it admitted in each bucket of the window, and those of them that leave with the whole bucket. */
  readonly own: Float64Array
  readonly whole: Float64Array
  newest: number
  closed: boolean
  refused: number
}

/**
 * A sliding window of buckets, each of several parts, as nodes share it. Units leave with their part; of large limits what is usual for
 * a bucket leaves with the whole of it. What leaves counts in full but for a small early release. Once there is no room, a node stays
 * closed until a part of the limit is free again; one that has refused many goes by whole buckets then.
 */
export class BucketRoom implements Room {
  readonly #limit: number
  readonly #nodes: () => number
  readonly #width: number
  readonly #buckets: number
  readonly #parts: number
  readonly #byBucket: boolean
  readonly #release: number
  readonly #opensAt: number
  /** Units of each part of the buckets; those that leave with the bucket are in its first one. */
  readonly #counts: Float64Array
  readonly #perNode = new Map<number, NodeInWindow>()
  #newest = Number.NEGATIVE_INFINITY
  /** How few and how many nodes there were at some time: who comes and goes is not known at once. */
  #fewest = Number.POSITIVE_INFINITY
  #most = 1

  /** @param nodes - how many there are now */
  constructor(limit: number, interval: number, shape: BucketShape, nodes: () => number) {
    this.#limit = limit
    this.#nodes = nodes
    this.#buckets = shape.buckets
    this.#width = interval / shape.buckets
    this.#parts = 1
    while (2 * this.#parts <= 32 && 2 * this.#parts * shape.buckets <= 960 && this.#width / (2 * this.#parts) >= 25) this.#parts *= 2
    this.#byBucket = this.#parts > 1 && limit > 200
    this.#release = EARLY_RELEASE * limit
    this.#opensAt = limit - Math.max(1, shape.reopen * limit)
    this.#counts = new Float64Array((shape.buckets + 1) * this.#parts)
  }

  fits(time: number, cost: number, place: number): boolean {
    this.#roll(time)
    const node = this.#node(place)
    const used = this.#used(time)
    const nodes = this.#nodes()
    this.#fewest = Math.min(this.#fewest, nodes)
    this.#most = Math.max(this.#most, nodes)
    const few = Math.max(2, (0.2 * this.#limit) / this.#most)
    const opens = node.refused > few ? this.#usedWhole(time) : used
    if (node.closed ? opens <= this.#opensAt : used <= this.#opensAt) {
      node.closed = false
      node.refused = 0
    }
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
      const own = node.own.reduce((sum, count) => sum + count, 0)
      const usual = Math.floor((1.5 * Math.max(own, this.#limit / this.#fewest)) / this.#buckets)
      whole = part === 0 ? units : Math.min(units, Math.max(0, usual - (node.whole[at] as number)))
    }
    node.own[at] = (node.own[at] as number) + units
    node.whole[at] = (node.whole[at] as number) + whole
    this.#add(bucket, 0, whole)
    this.#add(bucket, Math.max(0, Math.min(this.#parts - 1, part)), units - whole)
  }

  refused(place: number): void {
    this.#node(place).refused++
  }

  #add(bucket: number, part: number, units: number): void {
    const at = this.#place(bucket) + part
    this.#counts[at] = (this.#counts[at] as number) + units
  }

  /** Where a bucket's parts begin. */
  #place(bucket: number): number {
    return (bucket % (this.#buckets + 1)) * this.#parts
  }

  #node(place: number): NodeInWindow {
    const size = this.#buckets + 1
    let node = this.#perNode.get(place)
    if (node === undefined) {
      node = { own: new Float64Array(size), whole: new Float64Array(size), newest: this.#newest, closed: false, refused: 0 }
      this.#perNode.set(place, node)
    }
    node.newest = Math.max(node.newest, this.#newest - size)
    while (node.newest < this.#newest) {
      node.newest++
      node.own[node.newest % size] = 0
      node.whole[node.newest % size] = 0
    }
    return node
  }

  /** Empties what has left. Returns the running bucket. */
  #roll(time: number): number {
    // A clock that steps back leaves the window where it was.
    const bucket = Math.max(Math.floor(time / this.#width), this.#newest)
    this.#newest = Math.max(this.#newest, bucket - this.#buckets - 1)
    while (this.#newest < bucket) {
      this.#newest++
      const from = this.#place(this.#newest)
      this.#counts.fill(0, from, from + this.#parts)
    }
    return bucket
  }

  /** How much of the running bucket is over. */
  #over(time: number): number {
    return Math.max(0, time / this.#width - this.#newest)
  }

  /** Units in the window if buckets leave as a whole. */
  #usedWhole(time: number): number {
    const from = this.#place(this.#newest - this.#buckets)
    const leaving = sumOf(this.#counts.subarray(from, from + this.#parts))
    return sumOf(this.#counts) - Math.min(this.#release, leaving * this.#over(time))
  }

  #used(time: number): number {
    const from = this.#place(this.#newest - this.#buckets)
    const over = this.#over(time)
    const edge = Math.min(this.#parts - 1, Math.floor(over * this.#parts))
    let left = 0
    for (let part = this.#byBucket ? 1 : 0; part < edge; part++) left += this.#counts[from + part] as number
    const early = this.#byBucket
      ? Math.min(this.#release / 4, (this.#counts[from] as number) * over)
      : Math.min(this.#release, (this.#counts[from + edge] as number) * (over * this.#parts - edge))
    return sumOf(this.#counts) - left - early
  }
}

function sumOf(counts: Float64Array): number {
  let sum = 0
  for (const count of counts) sum += count
  return sum
}

/**
 * A bucket. Once a unit more would be too much it stays closed until a tenth of what it holds is free, or a twentieth of the limit; half
 * of it at most, and at least one unit.
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
    this.#opensAt = most - Math.max(1, Math.min(most / 2, Math.max(0.1 * most, limit / 20)))
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

/** Part of the limit that the oldest bucket may release before it has passed. */
const EARLY_RELEASE = 0.02
