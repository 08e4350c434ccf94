import type { LeaseAsk, LeaseReply } from '../../store/leases/ask.ts'
import type { Lease } from '../../store/leases/lease.ts'
import type { Ordinal } from '../../time/intervals.ts'
import type { Batch } from '../batch.ts'
import type { LeasedKey } from './leased-key.ts'

/**
 * The units that processes take ahead: those of an interval, which ends, or slots, which come back when their requests end. A `LeaseMeter`
 * leases units and lets requests wait for them. Its quota counts them, and decides which lease applies. Times are of the monotonic clock.
 */
export interface Quota<Key extends LeasedKey> {
  /** Whether a unit comes back when its request ends. The store counts such units whole. */
  readonly reused: boolean
  /** Units of requests in flight, of all keys. Absent if units don't come back. */
  readonly inFlight?: number

  // Units. A key without a lease of the running interval is undefined.

  /** Units in use here. */
  used(slot: number, key: Key | undefined): number
  /** The ordinal of units that are counted now. */
  ordinalOf(key: Key): Ordinal
  /** Whether the lease has this many units left. */
  fits(slot: number, key: Key, cost: number): boolean
  /** Whether this many more units may be in use here if the other processes have none. */
  mayUse(slot: number, key: Key, units: number, now: number): boolean
  count(slot: number, key: Key, cost: number, now: number): void
  /** Undoes `count`. `mark`: the lease's `taken` before it. */
  untake(slot: number, key: Key, mark: number, cost: number): void
  refund(name: string, ordinal: Ordinal, units: number, now: number): void
  reset(name: string, slot: number, key: Key | undefined, now: number): void
  /** When units of a key come back. */
  backAt(key: Key | undefined, now: number): number

  // Keys and time.

  newKey(slot: number, limit: number, now: number): Key
  /** A lease that the store has no counts of. */
  newLease(limit: number): Lease
  /** Changes to another lease if the current one applies no longer. */
  follow(slot: number, key: Key, limit: number, now: number): void
  /** The rule has changed, or the clock was set back. */
  changed?(slot: number, key: Key): void
  /** The store went down or came back. */
  storeChanged?(now: number): void
  /** Moves on. Returns when it must be called again. Absent: at the end of the interval. */
  roll?(now: number): number
  /** As `Exchanging.nextWalk`. */
  nextWalk?(now: number): number
  /** Returns units of requests that did not end in time. */
  expire?(slot: number, now: number): void
  /** A walk comes to a key. Returns whether the process must report that it still uses the lease. */
  visit(slot: number, key: Key, now: number, batch: Batch, leaving: boolean): boolean
  /** Whether a walk may remove a key. */
  isIdle(slot: number, key: Key | undefined, now: number): boolean
  /** Whether a key may be removed if the table is full. */
  mayForget(slot: number, key: Key | undefined): boolean
  forgotten(slot: number, key: Key | undefined): void

  // Requests to the store, and its answers.

  /** Units to have beside those for waiting requests. */
  ahead(key: Key, lease: Lease, waiting: number, limit: number, now: number): number
  /** As `LeaseAsk.early`. */
  early(ordinal: Ordinal): number
  /** The store has replied. Returns whether that also decides on waiting requests that get no units now. */
  answered(slot: number, key: Key, lease: Lease, ask: LeaseAsk, reply: LeaseReply, now: number): boolean
  /** A request for a lease has failed. */
  failed?(key: Key, lease: Lease): void
  /** The store has no units for a request of this cost. */
  ranOut(key: Key, cost: number, limit: number, now: number): void
  /** The store has announced how many units are free. */
  announced(slot: number, key: Key, lease: Lease, now: number): void
}
