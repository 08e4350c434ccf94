import type { Batch, EntryOwner } from '../../counting/batch.ts'
import type { PendingBlock } from './block-changes.ts'
import { RoundTrips } from './round-trips.ts'

/** An exchange that is under way. */
export interface Flight {
  readonly batch: Batch
  readonly blocks: readonly PendingBlock[]
  /** Whether it is a heartbeat. */
  readonly beat: boolean
  readonly sent: number
  /** When to look whether it takes too long; infinite once it is overdue. */
  lookAt: number
}

/** An answer is overdue after so many milliseconds, or after so many usual round trips, whichever is later. */
const OVERDUE = 50
const OVERDUE_TIMES = 10
/** An answer is late after so many milliseconds, or after so many usual round trips: too long for a key that fills fast. */
const LATE = 5
const LATE_TIMES = 4
/** It is looked at again when it has taken so many times as long. */
const AGAIN = 4
/** A store has a deadline of its own, of a minute at most. One that has none must not hold its node up for ever. */
const GIVE_UP = 61_000

/**
 * Exchanges that are under way, and whether the store has fallen silent meanwhile. A store that hangs is known to be away
 * only at its deadline, which has to be long. Until then each node would allow what is left for all of them. So nodes decide
 * by share as soon as an answer is overdue. Times are of the monotonic clock.
 */
export class Flights {
  // No Set: one that is added to and deleted from leaves a chain of old tables, each of which holds the next one and what was
  // in it. Once the first of them has grown old, exchanges that are over survive until the next full collection.
  #flights: readonly Flight[] = []
  #answered = false
  #silent = false
  /** Since when nothing was heard of the store although something is under way. */
  #waitingSince = Number.POSITIVE_INFINITY
  readonly #roundTrips = new RoundTrips()
  /** When a silence or an outage last ended. What waited through it is answered all at once, and says nothing of what is usual. */
  #backAt = Number.NEGATIVE_INFINITY
  /** The silence was noticed in an earlier turn of the event loop, so that an answer that only had to be read would be known. */
  #suspected = false

  /** How many there are. */
  get size(): number {
    return this.#flights.length
  }

  /** The store has answered once, so its time is known. */
  get answered(): boolean {
    return this.#answered
  }

  /** The store owes an answer for much longer than usual. */
  get silent(): boolean {
    return this.#silent
  }

  /** The usual time to an answer, in milliseconds. */
  get usual(): number {
    return this.#roundTrips.usual
  }

  /** How many heartbeats are among them. */
  get beats(): number {
    let beats = 0
    for (const { beat } of this.#flights) if (beat) beats++
    return beats
  }

  /** Those that were sent earlier. */
  before(sent: number): readonly Flight[] {
    return this.#flights.filter((flight) => flight.sent < sent)
  }

  begin(batch: Batch, blocks: readonly PendingBlock[], beat: boolean, now: number): Flight {
    const patience = this.#patience
    const late = batch.entries.length === 0 ? patience : Math.min(patience, Math.max(LATE, LATE_TIMES * this.usual))
    const flight: Flight = { batch, blocks, beat, sent: now, lookAt: now + late }
    this.#flights = [...this.#flights, flight]
    this.#waitingSince = Math.min(this.#waitingSince, now)
    return flight
  }

  /** Whether an exchange is still waited for. */
  has(flight: Flight): boolean {
    return this.#flights.includes(flight)
  }

  /** Exchanges that will hardly ever be answered. */
  lost(now: number): readonly Flight[] {
    return now < this.lostAt ? [] : this.#flights.filter(({ sent }) => now >= sent + GIVE_UP)
  }

  /** When the next one is given up. They are in the order in which they were sent. */
  get lostAt(): number {
    return (this.#flights[0]?.sent ?? Number.POSITIVE_INFINITY) + GIVE_UP
  }

  /** An exchange was answered. Whether the store was silent until then. */
  succeeded(flight: Flight, now: number, storeDown: boolean): boolean {
    if (flight.sent >= this.#backAt || now >= this.#backAt + LATE) this.#roundTrips.add(now - flight.sent)
    if (storeDown || this.#silent) this.#backAt = now
    this.#answered = true
    return this.#heard(flight, now)
  }

  failed(flight: Flight, now: number): void {
    this.#heard(flight, now)
  }

  #heard(flight: Flight, now: number): boolean {
    const was = this.#silent
    this.#flights = this.#flights.filter((one) => one !== flight)
    this.#silent = false
    this.#waitingSince = this.size > 0 ? now : Number.POSITIVE_INFINITY
    return was
  }

  /** Looks whether an answer is overdue. True: only a later turn of the event loop can tell. */
  listen(now: number, storeDown: boolean): boolean {
    if (storeDown || now < this.overdueAt) {
      this.#suspected = false
      return false
    }
    if (!this.#suspected) {
      this.#suspected = true
      return true
    }
    const patience = this.#patience
    if (now >= this.#waitingSince + patience) this.#silent = true
    // Other exchanges may be answered all the same: then only a part of the store is silent.
    for (const flight of this.#flights) {
      const { lookAt, sent } = flight
      if (now < lookAt) continue
      const overdue = now >= sent + patience
      flight.lookAt = overdue ? Number.POSITIVE_INFINITY : Math.min(sent + AGAIN * (now - sent), sent + patience)
      const { owners, tickets } = flight.batch
      for (let i = 0; i < owners.length; i++) {
        const owner = owners[i] as EntryOwner
        if (overdue) owner.overdue?.(tickets[i] as Batch['tickets'][number], now)
        else owner.late?.(tickets[i] as Batch['tickets'][number], now)
      }
    }
    return false
  }

  /** A later turn of the event loop looks again. */
  get suspected(): boolean {
    return this.#suspected
  }

  /** When to look next whether an answer takes too long. */
  get overdueAt(): number {
    if (!this.#answered) return Number.POSITIVE_INFINITY
    let at = this.#silent ? Number.POSITIVE_INFINITY : this.#waitingSince + this.#patience
    for (const { lookAt } of this.#flights) at = Math.min(at, lookAt)
    return at
  }

  get #patience(): number {
    return Math.max(OVERDUE, OVERDUE_TIMES * this.#roundTrips.usual)
  }
}
