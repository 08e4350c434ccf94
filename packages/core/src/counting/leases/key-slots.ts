import { beginAnew } from '../../store/leases/lease.ts'
import { LeasedKey } from './leased-key.ts'

/** Sums of fractional units are inexact: this part of a slot counts as nothing. */
const ROUNDING = 1e-9
/** Spare slots, as a part of the most that were in use lately. */
const SPARE = 1 / 4

/** This process's slots of one key, in whole ones. */
export class KeySlots extends LeasedKey {
  /** The most slots in use since the last renewal, and between that and the one before. */
  #peak = 0
  #before = 0

  /** Slots have no intervals. */
  override get next(): undefined {
    return undefined
  }

  /** Slots in use. */
  get running(): number {
    return this.current.taken - this.current.given
  }

  /** Whether this many units in flight fit into this process's slots. */
  holds(units: number): boolean {
    return units <= this.hold + ROUNDING
  }

  /** Sets the number of units in flight. */
  run(units: number): void {
    const { current, running } = this
    const now = Math.ceil(units - ROUNDING)
    if (now > running) current.taken = current.given + now
    else if (now < running) current.given = current.taken - now
    this.#peak = Math.max(this.#peak, now)
  }

  /** Begins with another lease: running requests continue, but without a slot. */
  renounce(incarnation: number, limit: number): void {
    this.begin(beginAnew(this.current, incarnation, limit))
  }

  /** Idle slots to keep beside those for `waiting` requests, so that a few more than lately can be in use together. */
  ahead(waiting: number, nodes: number): number {
    const { current, running } = this
    const needed = running + waiting
    const most = Math.max(this.#peak, this.#before, needed)
    this.low = 0
    // If few slots are left in the cluster, keep none idle.
    if (current.tail || most === 0) return 0
    // The idle slots of all processes together should leave as many at the store, or it would soon run out.
    const fair = Math.max(0, Math.floor(current.free / (2 * nodes)))
    const ahead = Math.min(most - needed + Math.ceil(most * SPARE), fair)
    this.low = Math.floor(Math.min(ahead, needed * SPARE) / 2)
    return ahead
  }

  /** A measuring period has ended. */
  measured(): void {
    this.#before = this.#peak
    this.#peak = this.running
  }

  /** Whether slots were returned, or more slots are in use than the process has. */
  override get owes(): boolean {
    const { untold, running, hold } = this
    return this.current.returned !== this.saidReturned || (untold !== 0 && Math.max(running, running - untold) > hold)
  }
}
