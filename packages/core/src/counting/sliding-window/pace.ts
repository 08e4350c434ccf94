import type { SlidingKey } from './key.ts'

/** c of the countdown, for all but small limits. */
export const DIVISOR = 1.5

/**
 * How much the others have taken since they were last heard of, as far as they have told. Of what they took since the key
 * was idle they hold back half of what they may, on average.
 *
 * @param units that they have told of
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
