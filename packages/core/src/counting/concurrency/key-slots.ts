import { beginAnew, surrender } from '../../store/leases/lease.ts'
import { LeasedKey } from '../leased-key.ts'

/** Sums of units that are no whole numbers are not exact: so little of a slot is nothing. */
const ROUNDING = 1e-9
/** Slots ahead of the most that were in use lately, as a part of these. */
const SPARE = 1 / 4

/** What a node has of one key: slots of the cluster, in whole ones. */
export class KeySlots extends LeasedKey {
  /** The most that was in use since the last renewal, and between that and the one before. */
  #peak = 0
  #before = 0

  /** Slots that this node holds, in use or idle. */
  get hold(): number {
    return this.current.granted - this.current.returned
  }

  /** Slots in use. */
  get running(): number {
    return this.current.taken - this.current.given
  }

  /** Whether so many units in flight find room in what this node holds. */
  holds(units: number): boolean {
    return units <= this.hold + ROUNDING
  }

  /** So many units are in flight now. */
  run(units: number): void {
    const { current, running } = this
    const now = Math.ceil(units - ROUNDING)
    if (now > running) current.taken = current.given + now
    else if (now < running) current.given = current.taken - now
    this.#peak = Math.max(this.#peak, now)
  }

  /** Begins with another lease: what runs goes on, and no slot is held for it. */
  renounce(incarnation: number, limit: number): void {
    this.begin(beginAnew(this.current, incarnation, limit))
  }

  /** Idle slots to hold beyond those that `waiting` requests need: so that as many as lately, and some, can be in use at once. */
  ahead(waiting: number, nodes: number): number {
    const { current, running } = this
    const needed = running + waiting
    const most = Math.max(this.#peak, this.#before, needed)
    this.low = 0
    // When little is left, nothing lies idle here.
    if (current.tail || most === 0) return 0
    // Others need some too: what all nodes together have idle is to leave as much at the store, or little would be left at once.
    const fair = Math.max(0, Math.floor(current.free / (2 * nodes)))
    const ahead = Math.min(most - needed + Math.ceil(most * SPARE), fair)
    this.low = Math.floor(Math.min(ahead, needed * SPARE) / 2)
    return ahead
  }

  /** A time of measuring has passed. */
  measured(): void {
    this.#before = this.#peak
    this.#peak = this.running
  }

  /** Gives all idle slots back but `keep`. */
  giveBack(keep: number): void {
    surrender(this.current, keep)
  }

  /** Whether the store counts other slots as this node's than it has: some were given back, or are in use beyond what it holds. */
  get owes(): boolean {
    const { untold, running, hold } = this
    return this.current.returned !== this.saidReturned || (untold !== 0 && Math.max(running, running - untold) > hold)
  }
}
