import type { SlidingKey } from './key.ts'

/** c of the countdown, for all but small limits. */
export const DIVISOR = 1.5

/**
 * Measures how much the others have taken since their last counts, by the counts received. After the key was idle, they have on average
 * half of their allowed units unsent.
 *
 * @param units that others have newly reported
 * @param total units in the window
 * @param now on the monotonic clock
 */
export function measurePace(key: SlidingKey, units: number, total: number, now: number): void {
  const fresh = key.idleAt >= key.syncedAt
  const elapsed = now - (fresh ? key.idleAt : key.syncedAt)
  if (!(elapsed > 0)) return
  const held = fresh && units > 0 ? Math.max(0, key.limit - total) / (2 * DIVISOR + 2) : 0
  key.paceUnits = key.paceUnits / 2 + units + held
  key.paceTime = key.paceTime / 2 + elapsed
  key.rate = key.paceUnits / key.paceTime
}
