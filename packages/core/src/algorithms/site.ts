import type { StoreTime } from '../time/store-time.ts'
import type { MeterSite } from './meter.ts'

/** What each meter sees of time, of the other processes and of the store. */
export interface MeterExchange {
  /** The store's clock. */
  readonly time: StoreTime
  /** This node's own wall clock. */
  readonly localTime: StoreTime
  /** Live nodes, at least 1. */
  readonly nodes: number
  /** Milliseconds that the store takes to answer, as a rule; 0 before its first answer. */
  readonly roundTrip: number
  /** False for a throttler without a store. */
  readonly connected: boolean
  /** Whether the store is away. */
  readonly storeDown: boolean
  /** The store has owed an answer for much longer than usual. Whether it is away, only its storeTimeout will tell. */
  readonly silent: boolean
  /** When the store came back last, on the monotonic clock; -Infinity when it never was away. */
  readonly storeUpAt: number
  /** When the exchange that found it was sent; other nodes probe at the same moment. */
  readonly foundAt: number
  /** Calls a function soon, in another turn of the event loop. */
  defer(run: () => void): void
}

/** What a meter whose counts are exchanged sees of its limiter: also how the store knows its keys. */
export interface SharedSite extends MeterSite {
  /** The slot of a key of the store, made if need be; negative when there is no room, unless a block by hand is to hold. */
  locateId(id: string, byHand?: boolean, now?: number): number
  /** The slot of a key of the store, or negative. */
  findId(id: string): number
  /** A key's last reset, by this node or another one; 0 for none. */
  resetAt(id: string): number
  /** Begins a key's counts anew, unless this reset is known. */
  reset(id: string, epoch: number, now: number, cause: 'remote'): void
  /**
   * Divides all limits by a number of equal parts, of which this node has one, until it is called with undefined. With 0 there is no limit,
   * and with Infinity nothing of it is left.
   */
  divideLimits(parts: (() => number) | undefined): void
  /** Whether limits are divided because the store has not answered yet. */
  readonly expecting: boolean
  /**
   * Divides all limits by the number of processes that are expected, as long as the store has not answered; 1 as soon as it has.
   *
   * @returns whether that changes the limits
   */
  expect(processes: number): boolean
  /** This node has blocked a key by itself. */
  blocked(key: string, forMs: number, cause: 'exceeded'): void
}
