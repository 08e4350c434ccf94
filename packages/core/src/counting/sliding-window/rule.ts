import type { Rejection } from '../../algorithms/meter.ts'
import type { SlidingKey } from './key.ts'

/** What a node allows by the counts of a sliding window, and what it makes of what the others say. */
export interface SlidingRule {
  /** Decides where the gate alone does not, and sets the gate; as `Meter.allows`. */
  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean
  /** Closes the key, and starts a cooldown if the rejection is due one. */
  rejected(slot: number, cost: number, now: number): void
  /** As `Meter.explain`. */
  explain(slot: number, cost: number, now: number): Rejection
  /** Opens a closed key if it has had room again. */
  reopen(key: SlidingKey, now: number): void
  /** Something new is known of a key. */
  lookAtNews(slot: number, key: SlidingKey, now: number): void
  /** Another node has blocked the key. */
  blockedRemotely(slot: number, now: number): void
}
