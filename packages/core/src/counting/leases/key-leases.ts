import { heldOf, type Lease, newLease } from '../../store/leases/lease.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { LeasedKey } from './leased-key.ts'

/** A key's pace is averaged over about this part of an interval. */
const MEMORY = 1 / 6
/** A process's share can be computed once the processes have reported this part of the limit as used. */
const TELLING = 0.05

/** The leases of one key in this process, and how fast they are used. */
export class KeyLeases extends LeasedKey {
  /** Taken in the last span of this interval. */
  next: Lease | undefined
  /** The cost for which the store has no units until `emptyUntil`: a smaller one may still fit. */
  emptyFor = 0
  /** Units per millisecond. NaN while unknown. */
  pace: number = Number.NaN
  /** This process's part of the key's use. NaN while unknown. */
  #share = Number.NaN
  #measuredAt: number
  #measured = 0

  constructor(lease: Lease, now: number) {
    super(lease)
    this.#measuredAt = now
  }

  /** Units are used beyond the lease: by charges, or without the store. */
  override get owes(): boolean {
    return heldOf(this.current) < 0
  }

  override isEmptyFor(cost: number, now: number): boolean {
    return now < this.emptyUntil && cost >= this.emptyFor
  }

  /** Moves the key to another interval. The units left in the last one are lost. */
  moveTo(ordinal: Ordinal, incarnation: number, limit: number, now: number, interval: number): void {
    this.measure(now, interval)
    this.#learnShare(limit)
    const { next } = this
    this.begin(next?.ordinal === ordinal ? next : newLease(ordinal, incarnation, limit))
    this.next = undefined
    this.emptyUntil = Number.NEGATIVE_INFINITY
    this.#measured = 0
  }

  /** Goes back to the running interval if this process's clock was ahead. Units that were used without the store move along. */
  moveBack(ordinal: Ordinal, incarnation: number, limit: number): void {
    const lease = newLease(ordinal, incarnation, limit)
    const { taken, given, cleared } = this.current
    lease.taken = taken - given - cleared
    lease.epoch = this.current.epoch
    this.begin(lease)
    this.next = undefined
    this.#measured = lease.taken
  }

  /** Measures the pace since the last call. */
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

  /** Units to have beside those for waiting requests, for the rest of an interval. */
  ahead(lease: Lease, left: number, nodes: number, limit: number): number {
    if (lease.tail || left <= 0) return 0
    const held = Math.max(0, heldOf(lease))
    const expected = Number.isNaN(this.pace) ? Number.POSITIVE_INFINITY : this.pace * left
    if (held >= expected) return 0
    // Half of the remaining units, by share, so that later requests elsewhere find some too.
    const fair = Math.max(1, Math.floor((lease.free / 2) * this.#shareOf(lease, nodes, limit)))
    return Math.max(held, Math.min(Math.ceil(expected + Math.sqrt(expected)), fair))
  }

  #shareOf({ used }: Lease, nodes: number, limit: number): number {
    // Both at the same moment: the store's counts of all processes, and of this one.
    const own = this.saidTaken - this.saidGiven
    if (used >= TELLING * limit && own > 0) return Math.min(1, own / Math.max(used, own))
    return Number.isNaN(this.#share) ? 1 / nodes : this.#share
  }

  #learnShare(limit: number): void {
    const { used } = this.current
    if (used >= TELLING * limit) this.#share = Math.min(1, (this.saidTaken - this.saidGiven) / used)
  }
}
