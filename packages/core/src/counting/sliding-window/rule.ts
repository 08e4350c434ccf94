import type { Rejection } from '../../algorithms/meter.ts'
import type { SlidingKey } from './key.ts'

/** The decisions of a process by the counts of a sliding window, and its use of the others' counts. */
export interface SlidingRule {
  /** Decides if the gate alone can't, and sets the gate, as `Meter.allows` does. */
  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean
  /** Closes the key, and starts a cooldown if the rejection is due one. */
  rejected(slot: number, cost: number, now: number): void
  /** As `Meter.explain`. */
  explain(slot: number, cost: number, now: number): Rejection
  /** Opens a closed key if it had capacity again. */
  reopen(key: SlidingKey, now: number): void
  /** New counts of a key have arrived. */
  lookAtNews(slot: number, key: SlidingKey, now: number): void
  /** Another process has blocked the key. */
  blockedRemotely(slot: number, now: number): void
}
