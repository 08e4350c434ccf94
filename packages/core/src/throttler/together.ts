import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Outcome } from '../decide/outcome.ts'
import type { Together } from '../queue/gate.ts'
import type { Clock } from '../time/clock.ts'

/** What is needed of the throttler. */
interface TogetherHost {
  readonly clock: Clock
  readonly random: () => number
  /** Handed over: what it imported would be in a file of its own, as this one is loaded later. */
  readonly PolicyDecision: typeof PolicyDecision
}

/** So late a timer may be, in milliseconds. */
const LATE = 50

/** How requests that wait for a key of a policy are asked for together; undefined where the store is not asked for several. */
export function together(
  { clock, random, PolicyDecision }: TogetherHost,
  limiter: Limiter,
  key: string,
  cost: number,
): Together<Decision> | undefined {
  const { meter, policy } = limiter
  const { grouping } = meter
  const now = clock.monotonic()
  const slot = grouping === undefined || policy.dryRun || !(cost > 0) ? -1 : limiter.locate(key)
  if (grouping === undefined || slot < 0 || !grouping.asks(slot, cost, now)) return undefined
  const nodes = meter.syncing?.nodes ?? 1
  const limit = limiter.limitOf(slot)
  const left = meter.remaining(slot, now)
  const take = async (count: number): Promise<readonly Decision[]> => {
    const taking = grouping.take(slot, cost, count, policy.deadline, now)
    const { passed } = limiter.cell
    const outcome: Outcome = passed.limit === limit ? passed : { ...passed, limit }
    const taken = await taking
    if (taken === undefined) return []
    const after = Math.ceil(taken.resetAfter)
    // As if they had been asked for one after another: of a pace that says when each of them goes.
    return Array.from(
      { length: count },
      (_, place) => new PolicyDecision(outcome, key, Math.min(limiter.most(limit), taken.left + (count - 1 - place) * cost), after, cost),
    )
  }
  const fit = Math.floor(left / cost)
  const { delay } = policy.algorithm
  // Of what comes free at once a node may not know how many others wait for it: each asks for less than its part, again and again.
  if (delay === undefined) return { part: Math.floor(left / (2 * nodes - 1) / cost), fit, after: 0, take }
  const part = Math.floor(limiter.most(limit) / 4 / cost)
  const after = left < part * cost ? ((part * cost - left + random() * part * cost) * policy.interval) / limit : 0
  // What has been let in keeps the pace for so long.
  const busy = delay(left, limit, policy.interval)
  return { part, fit, after: busy > after + 2 * (meter.syncing?.roundTrip ?? 0) + LATE ? after : 0, take }
}
