import type { OpenReservation } from '../store/contract.ts'
import type { Ordinal } from '../time/intervals.ts'

/** Milliseconds by which the store settles a reservation later than its process, whose last report may be in flight. */
export const LATE = 1_000

/**
 * Open reservations of a policy that the store knows, so that it can settle them if this process dies. A reservation's `id`, `units` and
 * `due` are as the store has them. Times are of the monotonic clock.
 */
export interface Holds {
  /**
   * Opens a reservation of units that are counted already.
   *
   * @param ordinal the interval or bucket that counted them
   * @param ttl milliseconds until it ends
   * @param due units that count at its end if nothing else is known
   * @returns undefined if the store can't settle it
   */
  open(
    key: string,
    ordinal: Ordinal,
    reservation: Pick<OpenReservation, 'id' | 'units' | 'due'>,
    ttl: number,
    now: number,
  ): Held | undefined
  /** Whether the store still has it open. Otherwise it has counted `due`, or the units have left the count. */
  isOpen(held: Held, now: number): boolean
  /** Reports the units that it has used so far. Returns it with them as `due`, or unchanged if that is impossible now. */
  use(key: string, ordinal: Ordinal, held: Held, used: number, now: number): Held
  /**
   * Closes it.
   *
   * @returns whether `used` units count for it now. Otherwise the caller refunds or charges the difference
   */
  settle(key: string, ordinal: Ordinal, held: Held, used: number, now: number): boolean
  /** A reservation of a key has ended, or was not allowed. Absent if their number does not matter. */
  ended?(key: string): void
  /** Sends changes that have not been sent. Called about once a second. */
  flush?(now: number): void
}

/** An open reservation, as the store has it. */
export type Held = OpenReservation
