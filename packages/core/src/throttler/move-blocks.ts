import type { Limiter } from '../decide/limiter.ts'
import { UNANSWERED } from '../keys/blocks.ts'

/**
 * Has a policy's keys stay blocked under a rule that replaces it and counts anew. A block by hand is told to the other nodes again,
 * since they know it under the other rule; a cooldown is not: each node that takes the rule over moves those that it knows.
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
    if (manual) to.meter.tellBlock?.(to.idOf(next), 'set', until - now, until)
  }
}
