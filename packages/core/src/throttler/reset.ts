import { resetsAllKeys } from '../decide/coordination.ts'
import type { Limiter } from '../decide/limiter.ts'
import { ALL_LABEL, idOfKey } from '../keys/key-id.ts'
import { show, WeirError } from '../report/errors.ts'
import { ACTION_OPTIONS, type ActionOptions, countedKey, limitersOf } from './limiters-of.ts'
import type { LimitersNow } from './manual-blocks.ts'

/** As the throttler's. */
export function reset(given: string, options: ActionOptions, at: LimitersNow): void {
  const id = idOfKey(countedKey(given))
  const limiters = limitersOf(at.limiters, options, 'reset', ACTION_OPTIONS)
  const now = at.now()
  for (const limiter of limiters) resetId(limiter, id, now)
}

/** As the throttler's. */
export function resetAll(options: ActionOptions, at: LimitersNow): void {
  const limiters = limitersOf(at.limiters, options, 'resetAll', ACTION_OPTIONS)
  const policy = limiters.map((limiter) => limiter.policy).find((one) => !resetsAllKeys(one))
  if (policy !== undefined) {
    const needs = "With a store it needs fixedWindow() or slidingCounter(), and coordination 'background' or 'periodic'"
    const what = `resetAll() does not apply to policy ${show(policy.name)}. ${needs}. Reset single keys with reset(key).`
    throw new WeirError('WEIR_INVALID_OPTION', what)
  }
  const now = at.now()
  for (const limiter of limiters) {
    // The store resets a key's counts when it gets the next ones. It must forget the blocks now.
    for (const id of limiter.blocks.blockedIds()) resetId(limiter, id, now)
    resetId(limiter, ALL_LABEL, now)
  }
}

function resetId(limiter: Limiter, id: string, now: number): void {
  const known = limiter.resets.epochOf(id)
  const epoch = limiter.meter.syncedBlocks?.reportReset(id, known, now) ?? known + 1
  limiter.reset(id, epoch, now, 'manual')
}
