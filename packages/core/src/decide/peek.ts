import { outcomeOfOverflow, rejection } from './decide-one.ts'
import { PolicyDecision } from './decision.ts'
import { type Limiter, NO_SLOT } from './limiter.ts'

/**
 * Decides by one policy without changing anything. A key that is not in the table is checked in a temporary slot.
 *
 * @param cost units. 0 checks only whether the key is blocked
 * @param limit the key's own limit. Undefined for the policy's
 */
export function peekOne(limiter: Limiter, key: string, cost: number, limit: number | undefined, now: number): PolicyDecision {
  const { table } = limiter
  const found = table.find(key)
  if (found >= 0) return peekAt(limiter, found, key, cost, limit, now)
  const crowded = !limiter.hasRoom(now)
  if (crowded && limiter.overflow !== 'shared') return outcomeOfOverflow(limiter, key, cost, now)
  const shared = crowded ? limiter.sharedSlot : NO_SLOT
  if (shared >= 0) return peekAt(limiter, shared, key, cost, undefined, now)
  const slot = table.reserve(key)
  try {
    return peekAt(limiter, slot, key, cost, limit, now)
  } finally {
    limiter.forget(slot)
  }
}

function peekAt(limiter: Limiter, slot: number, key: string, cost: number, limit: number | undefined, now: number): PolicyDecision {
  const before = limiter.wholeLimitOf(slot)
  limiter.limitTo(slot, limit)
  try {
    const { meter } = limiter
    if (!meter.allows(slot, cost, now, false)) return rejection(limiter, slot, key, cost, meter.explain(slot, cost, now), now)
    return new PolicyDecision(limiter.outcome(slot, 'ok'), key, meter.remaining(slot, now), Math.ceil(meter.resetAfterMs(slot, now)), 0)
  } finally {
    limiter.limitTo(slot, before)
  }
}
