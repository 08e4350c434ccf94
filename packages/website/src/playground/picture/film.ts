import type { LanesOutcome } from '../runs/lanes.ts'
import { KIND, type Tape } from '../tape/tape.ts'

/** A process at a moment. Units are of the current interval. */
export interface NodeMoment {
  readonly allowed: number
  readonly rejected: number
  /** Units that the others have allowed, as this process has confirmed them. */
  readonly others: number
  /** Time of its first rejection in this interval. Undefined before. */
  readonly provenAt: number | undefined
}

interface Heard {
  readonly time: number[]
  readonly others: number[]
}

/** A tape that can be read at any moment. */
export class Film {
  readonly nodes: number
  readonly limit: number
  readonly interval: number
  /** Milliseconds. */
  readonly length: number
  readonly fault: LanesOutcome['fault']
  readonly messages: Tape['messages']
  /** Times of the requests that each process allowed, and that it rejected. */
  readonly allowed: readonly Float64Array[]
  readonly rejected: readonly Float64Array[]
  readonly #heard: readonly Heard[]
  readonly #stored: { readonly time: number[]; readonly total: number[] } = { time: [], total: [] }
  readonly #states: Tape['states']

  constructor({ nodes, limit, interval, intervals, tape, fault }: LanesOutcome) {
    this.nodes = nodes
    this.limit = limit
    this.interval = interval
    this.length = intervals * interval
    this.fault = fault
    this.messages = tape.messages
    this.#states = tape.states
    this.allowed = split(tape, nodes, 1)
    this.rejected = split(tape, nodes, 0)
    this.#heard = Array.from({ length: nodes }, () => ({ time: [], others: [] }))
    this.#listen()
  }

  node(node: number, time: number): NodeMoment {
    const begin = this.begin(time)
    const rejected = this.rejected[node] as Float64Array
    const first = upTo(rejected, begin)
    const count = upTo(rejected, time) - first
    const heard = this.#heard[node] as Heard
    const last = upTo(heard.time, time) - 1
    return {
      allowed: this.own(node, time),
      rejected: count,
      others: last >= 0 && (heard.time[last] as number) >= begin ? (heard.others[last] as number) : 0,
      provenAt: count > 0 ? rejected[first] : undefined,
    }
  }

  /** Whether a process decides without the store at a moment. */
  storeDown(node: number, time: number): boolean {
    return this.#states.findLast((state) => state.node === node && state.time <= time)?.storeDown ?? false
  }

  /** Units that a process has allowed in the interval of a moment. */
  own(node: number, time: number): number {
    const allowed = this.allowed[node] as Float64Array
    return upTo(allowed, time) - upTo(allowed, this.begin(time))
  }

  /** Units that the store has received in the interval of a moment. */
  stored(time: number): number {
    const last = upTo(this.#stored.time, time) - 1
    return last >= 0 && (this.#stored.time[last] as number) >= this.begin(time) ? (this.#stored.total[last] as number) : 0
  }

  /** Units that all processes have allowed in the interval of a moment. */
  sum(time: number): number {
    let sum = 0
    for (let node = 0; node < this.nodes; node++) sum += this.own(node, time)
    return sum
  }

  begin(time: number): number {
    return Math.floor(time / this.interval) * this.interval
  }

  /** The next moment at which a message is sent, or a process rejects for the first time in an interval. */
  next(time: number): number {
    const { sent } = this.messages
    const message = sent[upTo(sent, time)] ?? this.length
    let proof = this.length
    for (let node = 0; node < this.nodes; node++) {
      const { provenAt } = this.node(node, Math.min(message, this.begin(time) + this.interval - 1e-6))
      if (provenAt !== undefined && provenAt > time) proof = Math.min(proof, provenAt)
    }
    return Math.min(message, proof, this.length)
  }

  #listen(): void {
    const { arrived, handled, sent, total, node, kind } = this.messages
    const order = Array.from(arrived.keys())
      .filter((index) => !Number.isNaN(total[index]) && arrived[index] !== Number.POSITIVE_INFINITY)
      .sort((one, other) => (arrived[one] as number) - (arrived[other] as number))
    const told = new Map<number, number>()
    for (const index of order) {
      const place = node[index] as number
      const at = arrived[index] as number
      // The total includes the process's own units, as it last reported them, so they are subtracted.
      if (kind[index] === KIND.sync) told.set(place, this.own(place, sent[index] as number))
      const heard = this.#heard[place] as Heard
      if (this.begin(handled[index] as number) !== this.begin(at)) continue
      heard.time.push(at)
      heard.others.push(Math.max(0, (total[index] as number) - (told.get(place) ?? 0)))
    }
    const stored = order
      .filter((index) => kind[index] === KIND.sync)
      .sort((one, other) => (handled[one] as number) - (handled[other] as number))
    for (const index of stored) {
      this.#stored.time.push(handled[index] as number)
      this.#stored.total.push(total[index] as number)
    }
  }
}

/** Times of the allowed (1) or rejected (0) requests of each process. */
function split({ requests: { time, node, allowed } }: Tape, nodes: number, which: number): Float64Array[] {
  const counts = new Uint32Array(nodes)
  for (let index = 0; index < time.length; index++) if (allowed[index] === which) counts[node[index] as number]!++
  const lists = Array.from(counts, (count) => new Float64Array(count))
  counts.fill(0)
  for (let index = 0; index < time.length; index++) {
    if (allowed[index] !== which) continue
    const place = node[index] as number
    ;(lists[place] as Float64Array)[counts[place]!++] = time[index] as number
  }
  return lists
}

/** Number of elements in an ascending list that are at most `value`. */
export function upTo(list: ArrayLike<number>, value: number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as number) <= value) low = middle + 1
    else high = middle
  }
  return low
}
