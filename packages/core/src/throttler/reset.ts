import { idOfKey } from '../decide/limiter.ts'
import { ACTION_OPTIONS, type ActionOptions, countedKey, limitersOf } from './limiters-of.ts'
import type { LimitersNow } from './manual-blocks.ts'

/** As the throttler's. */
export function reset(given: string, options: ActionOptions, at: LimitersNow): void {
  const id = idOfKey(countedKey(given))
  const limiters = limitersOf(at.limiters, options, 'reset', ACTION_OPTIONS)
  const now = at.now()
  for (const limiter of limiters) {
    const known = limiter.resets.epochOf(id)
    const epoch = limiter.meter.syncedBlocks?.reportReset(id, known, now) ?? known + 1
    limiter.reset(id, epoch, now, 'manual')
  }
}
