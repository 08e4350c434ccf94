import type { IntervalMeasure, Ledger } from '../measure/ledger.ts'
import type { VirtualTime } from '../time/virtual-time.ts'
import type { ClusterNode } from './cluster-node.ts'

/**
 * Measures how long after the first request beyond the limit each process begins to reject. It peeks at every process after an
 * event reached it.
 */
export class BlockWatch {
  readonly #time: VirtualTime
  #interval: IntervalMeasure | undefined
  #key = ''
  #since = 0
  #until = 0
  #open: { node: ClusterNode; events: number }[] = []
  #delays: number[] = []

  constructor(time: VirtualTime) {
    this.#time = time
  }

  /**
   * Starts at a request beyond the limit, once in an interval.
   *
   * @param until the end of the interval, in virtual time
   */
  begin(ledger: Ledger, nodes: readonly ClusterNode[], until: number): void {
    if (this.#interval === ledger.current) return
    this.#end()
    this.#interval = ledger.current
    this.#until = until
    this.#key = ledger.key
    this.#since = this.#time.now
    this.#delays = []
    this.#open = nodes.map((node) => ({ node, events: -1 }))
    this.look()
  }

  /** Peeks at the processes that still allowed requests and that an event has reached since. */
  look(): void {
    if (this.#open.length === 0) return
    if (this.#time.now >= this.#until) {
      this.#end()
      return
    }
    this.#open = this.#open.filter((entry) => {
      if (entry.node.clock.events === entry.events) return true
      entry.events = entry.node.clock.events
      return !this.#rejected(entry.node)
    })
    if (this.#open.length === 0) this.#record()
  }

  /** Peeks again at a process that has just allowed a request, because this request may have closed the key. */
  allowed(node: ClusterNode): void {
    for (const entry of this.#open) if (entry.node === node) entry.events = -1
    this.look()
  }

  /** Drops the measurement because processes have started or left, so that it would mean nothing. */
  drop(): void {
    this.#open = []
    this.#delays = []
  }

  /** Ends the measurement with the interval. Processes that did not reject count with all of the time. */
  #end(): void {
    if (this.#open.length === 0) return
    for (const _ of this.#open) this.#delays.push(this.#until - this.#since)
    this.#open = []
    this.#record()
  }

  #rejected(node: ClusterNode): boolean {
    const decision = node.limiter.peek?.(this.#key)
    if (decision === undefined || decision.allowed) return false
    this.#delays.push(this.#time.now - this.#since)
    return true
  }

  #record(): void {
    if (this.#interval === undefined || this.#delays.length === 0) return
    this.#interval.blockMean = this.#delays.reduce((sum, delay) => sum + delay, 0) / this.#delays.length
    this.#interval.blockSlowest = Math.max(...this.#delays)
  }
}

/** Milliseconds between two peeks, which start `GUARD` milliseconds before the expected end of a block. */
const LOOK_EVERY = 0.05
const GUARD = 10

/** Measures how far apart the processes open a key again after its cooldown. */
export class UnblockWatch {
  /** Milliseconds from the first to the last process that opened the key again, for each block. */
  readonly spreads: number[] = []
  readonly #time: VirtualTime
  readonly #nodes: () => readonly ClusterNode[]
  readonly #watched = new Set<string>()

  constructor(time: VirtualTime, nodes: () => readonly ClusterNode[]) {
    this.#time = time
    this.#nodes = nodes
  }

  /** Starts to watch a key that was rejected for `retryAfterMs` milliseconds. */
  rejected(key: string, retryAfterMs: number): void {
    if (this.#watched.has(key)) return
    this.#watched.add(key)
    this.#time.at(this.#time.now + Math.max(0, retryAfterMs - GUARD), () => this.#look(key, new Map()), false)
  }

  #look(key: string, opened: Map<ClusterNode, number>): void {
    const { now } = this.#time
    let later = 0
    const nodes = this.#nodes()
    for (const node of nodes) {
      if (opened.has(node)) continue
      const decision = node.limiter.peek?.(key)
      if (decision === undefined) return
      if (decision.allowed) opened.set(node, now)
      else later = Math.max(later, decision.retryAfterMs)
    }
    if (nodes.every((node) => opened.has(node))) {
      const moments = nodes.map((node) => opened.get(node) as number)
      this.spreads.push(Math.max(...moments) - Math.min(...moments))
      this.#watched.delete(key)
      return
    }
    // While all are closed for longer, the end has only moved (a cooldown that began late in an interval).
    const wait = opened.size === 0 && later > 2 * GUARD ? later - GUARD : LOOK_EVERY
    this.#time.at(now + wait, () => this.#look(key, opened), false)
  }
}
