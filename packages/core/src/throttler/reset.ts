import { idOfKey, type Limiter } from '../decide/limiter.ts'
import { countedKey, limitersOf, type PolicyChoice } from './limiters-of.ts'

/** As the throttler's. All limiters must be at `now`. */
export function reset(given: string, options: PolicyChoice, limiters: readonly Limiter[], now: number): void {
  const id = idOfKey(countedKey(given))
  for (const limiter of limitersOf(limiters, options)) {
    const known = limiter.resets.epochOf(id)
    const epoch = limiter.meter.tellReset?.(id, known, now) ?? known + 1
    limiter.reset(id, epoch, now, 'manual')
  }
}
