import type { Clock } from '../time/clock.ts'
import type { Answer } from './line.ts'
import type { Wanted } from './options.ts'

/** Who lets requests in. */
export interface Gate<D extends Answer> {
  readonly clock: Clock
  /** Whether `take` may have to ask the store. */
  readonly waits: boolean
  /** What `take` would answer by what is known here. */
  peek(key: string, wanted: Wanted): D
  /** Whether `take` would ask the store although `peek` refuses. */
  asks(key: string, wanted: Wanted): boolean
  /**
   * Milliseconds that a request which `peek` allows should wait all the same: other nodes may take units at the same time, and are
   * to be heard first. 0 when it may go. Not asked where `take` asks the store.
   */
  pause(key: string, wanted: Wanted): number
  /** Counts a request if it may go. Right after a `peek` that allowed it, unless it asks the store. */
  take(key: string, wanted: Wanted): D | Promise<D>
  refund(decision: D): void
  /** Names the counter whose pace a decision with a delay keeps. */
  paceMaker(decision: D): string
  /** A decision whose delay is over, as it is now. */
  went(decision: D): D
  /**
   * Gives back what a decision took that was to wait for `left` milliseconds more: of what has a pace as much as has not drained yet.
   *
   * @returns milliseconds by which those behind it move up
   */
  giveBack(decision: D, left: number): number
  /** Milliseconds until so many requests, and units besides, can have gone one after another at the soonest. */
  soonest(key: string, requests: number, units: number, limit: number | undefined): number
}
