import { heldOf, type Lease, newLease } from '../../../store/leases/lease.ts'
import type { Ordinal } from '../../../time/intervals.ts'
import { LeasedKey } from '../../leased-key.ts'

/** Requests of a key are expected to come as they did in this part of an interval before. */
const MEMORY = 1 / 6
/** Of a key's use, as far as nodes have told it, this part of the limit tells a node's share. */
const TELLING = 0.05

/** What a node has of one key: its leases, and how fast they are used. */
export class KeyLeases extends LeasedKey {
  /** That of the next interval, taken in the last span of this one. */
  next: Lease | undefined
  /** The cost that the store has nothing for until `emptyUntil`: there may be units for a smaller one. */
  emptyFor = 0
  /** Units per millisecond; NaN while nothing is known. */
  pace: number = Number.NaN
  /** This node's part of the key's use; NaN while nothing is known. */
  #share = Number.NaN
  #measuredAt: number
  #measured = 0

  constructor(lease: Lease, now: number) {
    super(lease)
    this.#measuredAt = now
  }

  /** Brings it to another interval; what was left of the last one is gone. */
  moveTo(ordinal: Ordinal, incarnation: number, limit: number, now: number, interval: number): void {
    this.measure(now, interval)
    this.#learnShare(limit)
    const { next } = this
    this.begin(next?.ordinal === ordinal ? next : newLease(ordinal, incarnation, limit))
    this.next = undefined
    this.emptyUntil = Number.NEGATIVE_INFINITY
    this.#measured = 0
  }

  /** Goes back to the running interval if this node's clock was ahead. Units that were used without the store move along. */
  moveBack(ordinal: Ordinal, incarnation: number, limit: number): void {
    const lease = newLease(ordinal, incarnation, limit)
    const { taken, given, cleared } = this.current
    lease.taken = taken - given - cleared
    lease.epoch = this.current.epoch
    this.begin(lease)
    this.next = undefined
    this.#measured = lease.taken
  }

  /** Measures the pace since the last time. */
  measure(now: number, interval: number): void {
    const passed = now - this.#measuredAt
    if (!(passed > 0)) return
    const { taken, given } = this.current
    const pace = Math.max(0, taken - given - this.#measured) / passed
    const weight = 1 - Math.exp(-passed / (interval * MEMORY))
    this.pace = Number.isNaN(this.pace) ? (this.current.heard === 0 ? Number.NaN : pace) : this.pace + weight * (pace - this.pace)
    this.#measuredAt = now
    this.#measured = taken - given
  }

  /** Units to hold beyond those that waiting requests need, for the rest of an interval. */
  ahead(lease: Lease, left: number, nodes: number, limit: number): number {
    if (lease.tail || left <= 0) return 0
    const held = Math.max(0, heldOf(lease))
    const expected = Number.isNaN(this.pace) ? Number.POSITIVE_INFINITY : this.pace * left
    if (held >= expected) return 0
    // Half of what is left, by share, so that who comes later finds something too.
    const fair = Math.max(1, Math.floor((lease.free / 2) * this.#shareOf(lease, nodes, limit)))
    return Math.max(held, Math.min(Math.ceil(expected + Math.sqrt(expected)), fair))
  }

  #shareOf({ used }: Lease, nodes: number, limit: number): number {
    // Of the same moment: what the store knew of all nodes, and of this one.
    const own = this.saidTaken - this.saidGiven
    if (used >= TELLING * limit && own > 0) return Math.min(1, own / Math.max(used, own))
    return Number.isNaN(this.#share) ? 1 / nodes : this.#share
  }

  #learnShare(limit: number): void {
    const { used } = this.current
    if (used >= TELLING * limit) this.#share = Math.min(1, (this.saidTaken - this.saidGiven) / used)
  }
}
