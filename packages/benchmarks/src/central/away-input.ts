import type { Degraded } from '@weir/core'

export interface AwayInput {
  readonly degraded: Extract<Degraded, 'share' | 'open' | 'closed'>
  /** The part of the key's traffic that each node gets. */
  readonly parts: readonly number[]
}

export interface AwayResult {
  /** Admitted in each interval of: the store there, gone in the middle, away, back in the middle, there. */
  readonly admitted: readonly number[]
  /** Requests that were decided about 50 ms after they were made, or later, and the longest wait of all, in milliseconds. */
  readonly waited: number
  readonly longest: number
}

/** Units per 10 s. */
export const LIMIT = 1000
/** Milliseconds that a request waits for the store at most. */
export const DEADLINE = 50
