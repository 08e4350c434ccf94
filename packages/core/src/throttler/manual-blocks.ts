import type { Limiter } from '../decide/limiter.ts'
import { UNANSWERED } from '../keys/blocks.ts'
import { idOfKey } from '../keys/key-id.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { LOCAL } from '../report/stats.ts'
import { ACTION_OPTIONS, type ActionOptions, countedKey, limitersOf } from './limiters-of.ts'

/** The limiters whose keys are blocked and reset manually. */
export interface LimitersNow {
  readonly limiters: readonly Limiter[]
  /** The monotonic time, after all limiters were rolled to it. */
  now(): number
}

/** Blocks a key manually, whatever its counts are: as the throttler's. */
export function block(given: string, duration: Duration, options: ActionOptions, at: LimitersNow): void {
  const ms = parseDuration(duration, 'duration', 1)
  const key = countedKey(given)
  const limiters = limitersOf(at.limiters, options, 'block', ACTION_OPTIONS)
  const now = at.now()
  for (const limiter of limiters) {
    const slot = limiter.locateBlocked(key, now)
    if (slot >= 0) {
      limiter.meter.allows(slot, 1, now, false)
      limiter.blocks.set(slot, now + ms, true, LOCAL, UNANSWERED)
    }
    // Even if this process has no slot for the key: other processes may have one.
    limiter.meter.syncedBlocks?.report(idOfKey(key), 'set', ms, now + ms)
    if (slot >= 0) limiter.blocked(key, ms, 'manual')
  }
}

/** Lifts any block of a key: as the throttler's. */
export function unblock(given: string, options: ActionOptions, at: LimitersNow): void {
  const key = countedKey(given)
  const limiters = limitersOf(at.limiters, options, 'unblock', ACTION_OPTIONS)
  const now = at.now()
  for (const limiter of limiters) {
    const slot = limiter.table.find(key)
    const was = slot < 0 ? undefined : limiter.blocks.of(slot, now)
    if (was !== undefined) limiter.blocks.clear(slot)
    // Even if this process has no block of the key: the others may.
    limiter.meter.syncedBlocks?.report(idOfKey(key), 'lift', 0, was?.until ?? Number.POSITIVE_INFINITY)
    if (was !== undefined) limiter.unblocked(key, 'manual')
  }
}
