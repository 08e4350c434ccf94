import { type Counter, NO_SLOT, type Refusal } from './counter.ts'
import { LOCAL } from './counter-stats.ts'
import { PolicyDecision } from './decision.ts'
import type { Ordinal } from './time.ts'

/** A decision of one policy by itself: the hot path. `rollAt` must not have passed. */
export function decideOne(counter: Counter, key: string, cost: number, now: number): PolicyDecision {
  const slot = counter.locate(key)
  if (slot < 0) return overflowed(counter, key, now, true)
  const { policy } = counter
  if (counter.admits(slot, cost, now)) {
    counter.take(slot, cost)
    const left = counter.remaining(slot, now)
    return new PolicyDecision(true, 'ok', policy, key, left, Math.ceil(counter.resetAfter(slot, now)), cost, counter.ordinal)
  }
  return refuse(counter, slot, key, cost, now)
}

/** One policy's part of a decision whose outcome is known; `slot` is as `refusedSlot` says where this policy refused. */
export function partOf(
  counter: Counter,
  slot: number,
  key: string,
  cost: number,
  now: number,
  allowed: boolean,
  count: boolean,
): PolicyDecision {
  if (slot === NO_SLOT) return overflowed(counter, key, now, count)
  if (slot < 0) {
    const at = refusedSlot(slot)
    if (count) return refuse(counter, at, key, cost, now)
    return refusal(counter, at, key, counter.explain(at, cost, now), now)
  }
  if (allowed && count) counter.take(slot, cost)
  const taken = allowed && count ? cost : 0
  const left = Math.max(0, counter.remaining(slot, now) - (allowed && !count ? cost : 0))
  const reset = Math.ceil(counter.resetAfter(slot, now))
  return new PolicyDecision(true, 'ok', counter.policy, key, left, reset, taken, counter.ordinal)
}

/** Marks a slot as one whose policy refused, below `NO_SLOT`; its own inverse. */
export function refusedSlot(slot: number): number {
  return -2 - slot
}

/** Refuses a request that the policy has no room for, and counts the refusal. */
export function refuse(counter: Counter, slot: number, key: string, cost: number, now: number): PolicyDecision {
  if (counter.isFull(slot, cost)) {
    counter.countRefusal(slot, cost, 'limit')
    const { policy, ordinal } = counter
    const wait = Math.max(1, Math.ceil(counter.rollAt - now))
    return new PolicyDecision(policy.dryRun, 'limit', policy, key, counter.remaining(slot, now), wait, 0, ordinal)
  }
  const why = counter.refuse(slot, cost, now)
  counter.countRefusal(slot, cost, why.reason)
  return refusal(counter, slot, key, why, now)
}

/** The part of a policy whose units the store has granted; they are counted already, in the interval `ordinal`. */
export function reservedPart(counter: Counter, slot: number, key: string, cost: number, ordinal: Ordinal, now: number): PolicyDecision {
  const end = Math.ceil(counter.resetAfter(slot, now))
  return new PolicyDecision(true, 'ok', counter.policy, key, counter.remaining(slot, now), end, cost, ordinal)
}

function overflowed(counter: Counter, key: string, now: number, count: boolean): PolicyDecision {
  const { policy, ordinal } = counter
  const end = Math.ceil(counter.rollAt - now)
  if (counter.overflow === 'allow' || policy.dryRun) {
    const reason = counter.overflow === 'allow' ? 'ok' : 'overflow'
    return new PolicyDecision(true, reason, policy, key, policy.limit, end, 0, ordinal)
  }
  if (count) counter.stats.countRefusal('overflow', LOCAL)
  return new PolicyDecision(false, 'overflow', policy, key, 0, Math.max(1, end), 0, ordinal)
}

function refusal(counter: Counter, slot: number, key: string, { reason, retryAfter }: Refusal, now: number): PolicyDecision {
  const { policy } = counter
  const wait = Math.max(1, Math.ceil(retryAfter))
  return new PolicyDecision(policy.dryRun, reason, policy, key, counter.remaining(slot, now), wait, 0, counter.ordinal)
}
