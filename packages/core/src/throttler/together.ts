import { drainTime } from '../algorithms/drain-time.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Outcome } from '../decide/outcome.ts'
import { leadOf, ownPart, unitsAhead } from '../queue/call-size.ts'
import type { Ahead, Together } from '../queue/gate.ts'
import { isLike, type Wanted } from '../queue/options.ts'
import type { Clock } from '../time/clock.ts'
import type { Ordinal } from '../time/intervals.ts'
import { delayOf, passingOf } from './bucket-delay.ts'

/** A request's key and cost for the policy. */
interface AskedOfOne {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
}

/**
 * Sends the waiting requests for a key of a policy together. Undefined if the store can't decide several.
 *
 * @param usual the cost of a request without one of its own
 * @param wanted the first of them
 * @param costOf the cost of a request at the policy. Undefined for a request that must not be sent with others
 */
export function together(
  clock: Clock,
  { limiter, key, cost }: AskedOfOne,
  usual: number,
  wanted: Wanted,
  costOf: (key: string, wanted: Wanted) => number | undefined,
): Together<Decision> | undefined {
  const { meter, policy } = limiter
  const { reservations } = meter
  const now = clock.monotonic()
  const slot = reservations?.leased !== false || policy.dryRun || !(cost > 0) ? -1 : limiter.locate(key)
  if (reservations === undefined || slot < 0 || !reservations.needsStore(slot, cost, now)) return undefined
  const { nodes = 1, roundTrip = 0 } = meter.syncing ?? {}
  const limit = limiter.limitOf(slot)
  const most = limiter.most(limit)
  const left = meter.remaining(slot, now)
  const isAhead = reservations.levelAhead?.(slot, now) !== undefined
  const each = drainTime(1, limit, policy.interval)
  const take = async (costs: readonly number[], within: number): Promise<readonly Decision[]> => {
    const units = costs.reduce((sum, one) => sum + one, 0)
    // With this maximum the first request can make its timeout, and usually the later ones behind it too.
    const mostAhead = passingOf(policy.algorithm, limit) + Math.max(0, within - roundTrip) / each + units - cost
    const { storeTimeout } = policy
    const reserving = reservations.reserve({ slot, key, costs, units, given: limiter.givenTo(key), storeTimeout, most: mostAhead }, now)
    const { passed } = limiter.cell
    const outcome: Outcome = passed.limit === limit ? passed : { ...passed, limit }
    const reserved = await reserving
    if (reserved === undefined) return []
    const after = Math.ceil(reserved.resetAfterMs)
    const then = clock.monotonic()
    // The decisions look as if requests were decided one after another, by a pace that shows when each is allowed.
    const counted = costs.slice(0, reserved.count)
    let behind = counted.reduce((sum, one) => sum + one, 0)
    return counted.map((one) => {
      behind -= one
      const leftThen = reserved.left + behind
      const delay = isAhead ? delayOf(policy, limit, most - leftThen) : 0
      // Its units stay in the bucket until its time, so they can be refunded until then as if they were counted at that time.
      const goes = delay > 0 ? { ...outcome, ordinal: reserved.ordinal ?? (Math.floor(then + delay) as Ordinal) } : outcome
      const decision = new PolicyDecision(goes, key, Math.max(0, Math.min(most, leftThen)), after, one)
      return isAhead ? Object.defineProperty(decision, 'delayMs', { value: delay }) : decision
    })
  }
  const part = ownPart(left, nodes)
  const lead = leadOf(roundTrip, isAhead ? each : 0)
  const ahead: Ahead = {
    by: { policy, key },
    later: reservations.isReturning?.(slot) === true,
    unitsOf: ({ units, unsaid }) => unitsAhead(part, units + unsaid * usual, each, lead),
  }
  const costBeside = (other: string, beside: Wanted) => {
    if (!isAhead) return isLike(beside, wanted) ? cost : undefined
    const one = beside.limit === wanted.limit ? costOf(other, beside) : undefined
    return one !== undefined && one > 0 && one <= most ? one : undefined
  }
  return { part: Math.floor(part / cost), fit: Math.floor(left / cost), cost, lead, ahead: isAhead ? ahead : undefined, costBeside, take }
}
