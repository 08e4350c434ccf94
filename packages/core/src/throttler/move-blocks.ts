import type { Limiter } from '../decide/limiter.ts'
import { UNANSWERED } from '../keys/blocks.ts'

/**
 * Moves the blocks of a policy's keys to a rule that replaces it and counts from zero. A manual block is reported to the other processes
 * again, because they have it under the old rule. A cooldown is not: each process that takes the rule over moves its own.
 */
export function moveBlocks(from: Limiter, to: Limiter, now: number): void {
  for (const [slot, { until, manual, source }] of [...from.blocks]) {
    if (until <= now || from.isShared(slot)) continue
    const key = from.keyOf(slot)
    const next = manual ? to.locateBlocked(key, now) : to.locate(key, now)
    from.blocks.clear(slot)
    if (next < 0 || to.isShared(next)) continue
    to.meter.allows(next, 1, now, false)
    to.blocks.set(next, until, manual, source, UNANSWERED)
    if (manual) to.meter.syncedBlocks?.report(to.idOf(next), 'set', until - now, until)
  }
}
