import type { Batch, EntryOwner } from '../../counting/batch.ts'
import type { PendingBlock } from './block-changes.ts'
import { RoundTrips } from './round-trips.ts'

/** A sync that is under way. */
export interface Flight {
  readonly batch: Batch
  readonly blocks: readonly PendingBlock[]
  /** Whether it is a heartbeat. */
  readonly beat: boolean
  readonly sent: number
  /** When to check whether the sync takes too long. Infinite once it is overdue. */
  lookAt: number
  /** How often the process has stood still meanwhile. */
  freezes: number
}

/** An answer is overdue after this many milliseconds, or this many usual round trips, whichever is later. */
const OVERDUE = 50
const OVERDUE_TIMES = 10
/**
 * An answer is late after this many milliseconds, or this many usual round trips, whichever is later. That is too long for a key that fills
 * fast.
 */
const LATE = 5
const LATE_TIMES = 4
/** A late sync is checked again when it has taken this many times as long. */
const AGAIN = 4
/** Stores have a timeout of a minute at most. Without this bound, a store without a timeout could stop all syncs for ever. */
const GIVE_UP = 61_000
/** If a process has stood still this often since a sync was sent, it would have read the answer. */
const MOST_FREEZES = 3
/** A check that comes this many milliseconds late shows that a process that stands still again and again has just done so. */
const LATE_CHECK = 10

/**
 * Syncs that are under way, and whether the store is silent. A store that hangs fails only at its timeout, which must be long. Until
 * then each process would allow all remaining quota. So processes decide by share as soon as an answer is overdue. Times are of
 * the monotonic clock.
 */
export class Flights {
  // An array, because a Set with many additions and deletions leaves a chain of old tables, each with its entries. Once the first
  // of them is in the old generation, finished syncs survive until the next full collection.
  #flights: readonly Flight[] = []
  #answered = false
  #silent = false
  /** Since when the store has sent no answer although a sync is under way. */
  #waitingSince = Number.POSITIVE_INFINITY
  readonly #roundTrips = new RoundTrips()
  /** When a silence or an outage last ended. Syncs that waited through it are answered together, so their times are not usual times. */
  #backAt = Number.NEGATIVE_INFINITY
  /** When the process ran again after it had stood still. Answers that came meanwhile have not been read yet. */
  #thawedAt = Number.NEGATIVE_INFINITY
  /** Whether an earlier turn of the event loop noticed the silence. Since then the process would have read an answer that had arrived. */
  #suspected = false

  /** The number of syncs under way. */
  get size(): number {
    return this.#flights.length
  }

  /** Whether the store has answered once, so that its time is known. */
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

  /** The number of heartbeats among them. */
  get beats(): number {
    let beats = 0
    for (const { beat } of this.#flights) if (beat) beats++
    return beats
  }

  /** The syncs that were sent before `sent`. */
  before(sent: number): readonly Flight[] {
    return this.#flights.filter((flight) => flight.sent < sent)
  }

  begin(batch: Batch, blocks: readonly PendingBlock[], beat: boolean, now: number): Flight {
    const patience = this.#patience
    const late = batch.entries.length === 0 ? patience : Math.min(patience, Math.max(LATE, LATE_TIMES * this.usual))
    const flight: Flight = { batch, blocks, beat, sent: now, lookAt: now + late, freezes: 0 }
    this.#flights = [...this.#flights, flight]
    this.#waitingSince = Math.min(this.#waitingSince, now)
    return flight
  }

  /** Whether a sync is still under way. */
  has(flight: Flight): boolean {
    return this.#flights.includes(flight)
  }

  /** The syncs that will hardly ever be answered. */
  lost(now: number): readonly Flight[] {
    return now < this.lostAt ? [] : this.#flights.filter((flight) => now >= this.#endOf(flight))
  }

  /** When the next sync is given up. */
  get lostAt(): number {
    let at = Number.POSITIVE_INFINITY
    for (const flight of this.#flights) at = Math.min(at, this.#endOf(flight))
    return at
  }

  /** When a sync is given up. A process that stood still has not read yet what came meanwhile, but soon does so. */
  #endOf({ sent, freezes }: Flight): number {
    return GIVE_UP + (freezes < MOST_FREEZES ? Math.max(sent, this.#thawedAt) : sent)
  }

  /** Removes an answered sync. Returns whether the store was silent until then. */
  succeeded(flight: Flight, now: number, storeDown: boolean): boolean {
    const usual = flight.sent >= this.#backAt || now >= this.#backAt + LATE
    if (usual && flight.sent >= this.#thawedAt) this.#roundTrips.add(now - flight.sent)
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

  /** The process ran again after it had stood still. Syncs under way get as much time as if they had been sent now. */
  thawed(now: number): void {
    this.#thawedAt = now
    this.#suspected = false
    if (this.size > 0) this.#waitingSince = now
    const lookAt = now + this.#patience
    for (const flight of this.#flights) {
      flight.freezes++
      if (flight.lookAt < lookAt) flight.lookAt = lookAt
    }
  }

  /**
   * Checks whether an answer is overdue. Returns true if a later turn of the event loop must check again.
   *
   * @param freezes whether the process has stood still lately, perhaps also for moments that are too short to be noticed
   */
  listen(now: number, storeDown: boolean, freezes: boolean): boolean {
    if (storeDown || now < this.overdueAt) {
      this.#suspected = false
      return false
    }
    if (freezes && now >= this.overdueAt + LATE_CHECK) {
      this.thawed(now)
      return false
    }
    if (!this.#suspected) {
      this.#suspected = true
      return true
    }
    const patience = this.#patience
    if (now >= this.#waitingSince + patience) this.#silent = true
    // Other syncs may be answered nevertheless, if only a part of the store is silent.
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
