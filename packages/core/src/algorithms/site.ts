import type { StoreTime } from '../time/store-time.ts'
import type { MeterSite } from './meter.ts'

/** The process, as seen by meters that count in it alone. */
export interface MeterExchange {
  /** This process's own wall clock. */
  readonly localTime: StoreTime
  /** Calls a function soon, in another turn of the event loop. */
  defer(run: () => void): void
}

/** The limiter's view for a meter whose counts are synced: adds the keys' ids in the store. */
export interface SharedSite extends MeterSite {
  /** The slot of a store's key, created if it has none. Negative if the table is full, unless a manual block needs one. */
  locateId(id: string, byHand?: boolean, now?: number): number
  /** The slot of a store's key, or negative. */
  findId(id: string): number
  /** The limit for a request to a key that came with this limit. Undefined for the policy's own. */
  limitFor(key: string, given: number | undefined): number
  /** Sets the limit of a key that came with a request. */
  limitTo(slot: number, given: number | undefined): void
  /** A key's last reset, by this or another process. 0 for none. */
  resetAt(id: string): number
  /** Resets a key's counts, unless this reset is known. */
  reset(id: string, epoch: number, now: number, cause: 'remote'): void
  /**
   * Divides all limits by a number of equal parts, of which this process has one, until it is called with undefined. 0 means no limit, and
   * Infinity leaves no units.
   */
  divideLimits(parts: (() => number) | undefined): void
  /** Whether limits are divided because the store has not answered yet. */
  readonly expecting: boolean
  /**
   * Divides all limits by the expected number of processes until the store has answered. Then it is called with 1.
   *
   * @returns whether the limits change
   */
  expect(processes: number): boolean
  /** This process has blocked a key itself. */
  blocked(key: string, forMs: number, cause: 'exceeded'): void
}
