import type { Rejection } from '../algorithms/meter.ts'
import { boundedOnce } from '../keys/key-text.ts'
import type { Requests } from '../report/requests.ts'
import { LOCAL, type SourceIndex } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import { PolicyDecision } from './decision.ts'
import type { Limiter } from './limiter.ts'
import { RunningCell } from './outcome.ts'

/** Rounding error of time calculations, in milliseconds. Without it a block of an hour could become a second longer. */
const ROUNDING = 1e-6

/**
 * Decides and counts a request of a single policy: the hot path. `rollAt` must not have passed, and no key may have its own limit. V8
 * inlines this function and its callees if they have less than 920 bytes of bytecode together. So rarer outcomes are in other functions.
 */
export function decideOne(limiter: Limiter, key: string, cost: number, now: number, requests: Requests): PolicyDecision {
  const { meter } = limiter
  const slot = limiter.table.find(key)
  // -1 is `UNDECIDED`. Literals replace imported constants, as in `GatedMeter`.
  const left = slot < 0 ? -1 : meter.take(slot, cost, now)
  if (left >= 0) {
    requests.allowed++
    return new PolicyDecision(limiter.cell.passed, key, left, Math.ceil(meter.resetAfterMs(slot, now)), cost)
  }
  return left === -1 ? decideUndecided(limiter, slot, key, cost, now, requests) : rejectUsedUp(limiter, slot, key, now, requests)
}

/** Rejects a request if this process has seen the key's units used up, as for most requests of a flood. */
function rejectUsedUp(limiter: Limiter, slot: number, key: string, now: number, requests: Requests): PolicyDecision {
  requests.reasons.limit++
  limiter.countByLimit(slot, 0)
  const end = Math.ceil(limiter.meter.rollAt - now)
  return new PolicyDecision(limiter.cell.full, key, 0, end, end)
}

/** Does the same as `decideOne`, for a new key or one whose gate did not allow the request. */
function decideUndecided(limiter: Limiter, slot: number, key: string, cost: number, now: number, requests: Requests): PolicyDecision {
  const { meter } = limiter
  const source = slot < 0 ? -1 : meter.fullBy(slot, cost, now)
  if (source < 0 || limiter.policy.dryRun) return decideNew(limiter, key, cost, now, requests)
  requests.reasons.limit++
  limiter.countByLimit(slot, source as SourceIndex)
  const end = Math.ceil(meter.rollAt - now)
  return new PolicyDecision(limiter.cell.full, key, meter.remaining(slot, now), end, end)
}

/** Does the same as `decideOne`, for a new key or one whose gate can't decide. */
function decideNew(limiter: Limiter, key: string, cost: number, now: number, requests: Requests): PolicyDecision {
  const decision = decideSlowly(limiter, key, cost, now)
  requests.count(decision.outcome.allowed, decision.outcome.reason)
  return decision
}

/** Does the same as `decideOne` if single keys have their own limits. */
export function decideKeyed(limiter: Limiter, key: string, cost: number, now: number): PolicyDecision {
  const { meter } = limiter
  const slot = limiter.table.find(key)
  if (slot < 0 || meter.take(slot, cost, now) < 0) return decideSlowly(limiter, key, cost, now)
  return passed(limiter, slot, key, cost, now)
}

function decideSlowly(limiter: Limiter, given: string, cost: number, now: number): PolicyDecision {
  // The table contains only bounded keys, so a longer key comes here at each request.
  const key = boundedOnce(given)
  const slot = limiter.locate(key, now)
  if (slot < 0) return overflowed(limiter, key, cost, now, true)
  if (!limiter.meter.allows(slot, cost, now)) return reject(limiter, slot, key, cost, now)
  limiter.meter.add(slot, cost, now)
  return passed(limiter, slot, key, cost, now)
}

function passed(limiter: Limiter, slot: number, key: string, cost: number, now: number): PolicyDecision {
  return new PolicyDecision(
    limiter.limited ? limiter.outcome(slot, 'ok') : limiter.cell.passed,
    key,
    limiter.meter.remaining(slot, now),
    Math.ceil(limiter.meter.resetAfterMs(slot, now)),
    cost,
  )
}

/** Rejects a request to a key that is full by `source`. The rejection lasts at least a millisecond because `rollAt` is in the future. */
function closed(limiter: Limiter, slot: number, key: string, source: SourceIndex, now: number): PolicyDecision {
  const { meter } = limiter
  limiter.countByLimit(slot, source)
  const full = limiter.limited ? limiter.outcome(slot, 'limit') : limiter.cell.full
  const end = Math.ceil(meter.rollAt - now)
  return new PolicyDecision(full, key, meter.remaining(slot, now), end, end)
}

/** One policy's part of a decision with a known outcome. The policy itself allows the request, or its key has no slot. */
export function partOf(
  limiter: Limiter,
  slot: number,
  key: string,
  cost: number,
  now: number,
  allowed: boolean,
  count: boolean,
): PolicyDecision {
  if (slot < 0) return overflowed(limiter, key, cost, now, count)
  if (allowed && count) {
    limiter.meter.add(slot, cost, now)
    return passed(limiter, slot, key, cost, now)
  }
  const left = limiter.meter.remaining(slot, now)
  return new PolicyDecision(limiter.outcome(slot, 'ok'), key, left, Math.ceil(limiter.meter.resetAfterMs(slot, now)), 0)
}

/** The part of a policy that rejects a request by the counts of its key. */
export function rejectedPart(limiter: Limiter, slot: number, key: string, cost: number, now: number, count: boolean): PolicyDecision {
  if (count) return reject(limiter, slot, key, cost, now)
  return rejection(limiter, slot, key, cost, limiter.meter.explain(slot, cost, now), now)
}

/** Rejects a request for which the policy has no capacity, and counts the rejection. */
export function reject(limiter: Limiter, slot: number, key: string, cost: number, now: number): PolicyDecision {
  const source = limiter.meter.fullBy(slot, cost, now)
  if (source >= 0) return closed(limiter, slot, key, source as SourceIndex, now)
  const why = limiter.meter.reject(slot, cost, now)
  limiter.countRejection(slot, cost, why.reason)
  return rejection(limiter, slot, key, cost, why, now)
}

/**
 * The part of a policy whose units the store has granted. They are already counted, in the interval `ordinal`. The key may no longer be in
 * the table.
 */
export function reservedPart(limiter: Limiter, slot: number, key: string, cost: number, ordinal: Ordinal, now: number): PolicyDecision {
  const end = Math.ceil(slot < 0 ? limiter.meter.rollAt - now : limiter.meter.resetAfterMs(slot, now))
  const left = slot < 0 ? 0 : limiter.meter.remaining(slot, now)
  const outcome = new RunningCell(limiter.policy, ordinal).passed
  const limit = slot < 0 ? outcome.limit : limiter.wholeLimitOf(slot)
  return new PolicyDecision(limit === outcome.limit ? outcome : { ...outcome, limit }, key, left, end, cost)
}

function overflowed(limiter: Limiter, key: string, cost: number, now: number, count: boolean): PolicyDecision {
  const decision = outcomeOfOverflow(limiter, key, cost, now)
  if (count && !decision.allowed) limiter.stats.countRejection('overflow', LOCAL)
  return decision
}

/** The outcome of a request whose key does not fit into the table. */
export function outcomeOfOverflow(limiter: Limiter, key: string, cost: number, now: number): PolicyDecision {
  const { policy, cell } = limiter
  const end = Math.ceil(limiter.meter.rollAt - now)
  const most = limiter.most(policy.limit)
  if (limiter.overflow === 'allow' || policy.dryRun) {
    return new PolicyDecision(cell.outcome(limiter.overflow === 'allow' ? 'ok' : 'overflow'), key, most, end, 0)
  }
  return new PolicyDecision(cell.outcome('overflow', cost > most), key, 0, Math.max(1, end), Math.max(1, end))
}

export function rejection(limiter: Limiter, slot: number, key: string, cost: number, why: Rejection, now: number): PolicyDecision {
  const outcome = limiter.outcome(slot, why.reason, limiter.neverFits(slot, cost))
  // The end of a request in flight can't be predicted.
  const least = limiter.policy.algorithm.slots === undefined ? 1 : 0
  // A blocked key has no units left for the client, however many were counted.
  const blocked = why.reason === 'blocked' || why.reason === 'cooldown'
  const left = blocked ? 0 : limiter.meter.remaining(slot, now)
  const retryAfterMs = Math.max(least, Math.ceil(blocked ? why.retryAfterMs - ROUNDING : why.retryAfterMs))
  const resetAfterMs = Math.ceil(limiter.meter.resetAfterMs(slot, now) - ROUNDING)
  return new PolicyDecision(outcome, key, left, Math.max(retryAfterMs, resetAfterMs), retryAfterMs)
}
