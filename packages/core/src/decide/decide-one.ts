import { boundedOnce } from '../keys/key-text.ts'
import type { Ordinal } from '../time/intervals.ts'
import { PolicyDecision } from './decision.ts'
import { type Counter, NO_SLOT, type Refusal } from './limiter.ts'
import { RunningCell } from './outcome.ts'
import { LOCAL, type SourceIndex } from './stats.ts'

/** A decision of one policy by itself: the hot path. `rollAt` must not have passed. */
export function decideOne(counter: Counter, key: string, cost: number, now: number): PolicyDecision {
  const slot = counter.table.find(key)
  if (slot >= 0) {
    if (counter.takes(slot, cost)) return passed(counter, slot, key, cost, now)
    const source = counter.fullBy(slot, cost)
    if (source >= 0) return closed(counter, slot, key, source as SourceIndex, now)
  }
  return decideSlowly(counter, key, cost, now)
}

function decideSlowly(counter: Counter, given: string, cost: number, now: number): PolicyDecision {
  // No key in the table is longer, so one that is comes here each time.
  const key = boundedOnce(given)
  const slot = counter.locate(key)
  if (slot < 0) return overflowed(counter, key, cost, now, true)
  if (!counter.admits(slot, cost, now)) return refuse(counter, slot, key, cost, now)
  counter.take(slot, cost)
  return passed(counter, slot, key, cost, now)
}

function passed(counter: Counter, slot: number, key: string, cost: number, now: number): PolicyDecision {
  return new PolicyDecision(counter.cell.passed, key, counter.remaining(slot, now), Math.ceil(counter.resetAfter(slot, now)), cost)
}

/** Refuses a request to a key that is full by what `source` says, for a millisecond at least: `rollAt` is still to come. */
function closed(counter: Counter, slot: number, key: string, source: SourceIndex, now: number): PolicyDecision {
  counter.stats.countByLimit(source)
  return new PolicyDecision(counter.cell.full, key, counter.remaining(slot, now), Math.ceil(counter.rollAt - now), 0)
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
  if (slot >= 0 && allowed && count) {
    counter.take(slot, cost)
    return passed(counter, slot, key, cost, now)
  }
  if (slot === NO_SLOT) return overflowed(counter, key, cost, now, count)
  if (slot < 0) {
    const at = refusedSlot(slot)
    if (count) return refuse(counter, at, key, cost, now)
    return refusal(counter, at, key, cost, counter.explain(at, cost, now), now)
  }
  // Nothing is counted; who only looks is told what would be left.
  const left = Math.max(0, counter.remaining(slot, now) - (allowed ? cost : 0))
  return new PolicyDecision(counter.cell.passed, key, left, Math.ceil(counter.resetAfter(slot, now)), 0)
}

/** Marks a slot as one whose policy refused, below `NO_SLOT`; its own inverse. */
export function refusedSlot(slot: number): number {
  return -2 - slot
}

/** Refuses a request that the policy has no room for, and counts the refusal. */
export function refuse(counter: Counter, slot: number, key: string, cost: number, now: number): PolicyDecision {
  const source = counter.fullBy(slot, cost)
  if (source >= 0) return closed(counter, slot, key, source as SourceIndex, now)
  const why = counter.refuse(slot, cost, now)
  counter.countRefusal(slot, cost, why.reason)
  return refusal(counter, slot, key, cost, why, now)
}

/** The part of a policy whose units the store has granted; they are counted already, in the interval `ordinal`. */
export function reservedPart(counter: Counter, slot: number, key: string, cost: number, ordinal: Ordinal, now: number): PolicyDecision {
  const end = Math.ceil(counter.resetAfter(slot, now))
  return new PolicyDecision(new RunningCell(counter.policy, ordinal).passed, key, counter.remaining(slot, now), end, cost)
}

function overflowed(counter: Counter, key: string, cost: number, now: number, count: boolean): PolicyDecision {
  const { policy, cell } = counter
  const end = Math.ceil(counter.rollAt - now)
  if (counter.overflow === 'allow' || policy.dryRun) {
    return new PolicyDecision(cell.outcome(counter.overflow === 'allow' ? 'ok' : 'overflow'), key, policy.limit, end, 0)
  }
  if (count) counter.stats.countRefusal('overflow', LOCAL)
  return new PolicyDecision(cell.outcome('overflow', cost > policy.limit), key, 0, Math.max(1, end), 0)
}

function refusal(counter: Counter, slot: number, key: string, cost: number, why: Refusal, now: number): PolicyDecision {
  const outcome = counter.cell.outcome(why.reason, cost > counter.policy.limit)
  return new PolicyDecision(outcome, key, counter.remaining(slot, now), Math.max(1, Math.ceil(why.retryAfter)), 0)
}
