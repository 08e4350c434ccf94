import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Together } from '../queue/gate.ts'
import { isLike, type Wanted } from '../queue/options.ts'
import type { Clock } from '../time/clock.ts'
import { LEAD } from './together.ts'

/** What is needed of the throttler. */
interface LevelsHost {
  readonly clock: Clock
  // Handed over, as in `together`.
  readonly PolicyDecision: typeof PolicyDecision
  readonly combined: typeof combined
}

/** What a request asks of one policy. */
interface Level {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
}

/**
 * How requests that several policies count are asked for together, of which the store decides for at least one: by one question for each key
 * about the units of all of them. Undefined where each is asked for alone: where a policy only watches, takes units ahead, or lets requests go
 * later.
 *
 * @param wanted of the first of them, whose key is `key`
 * @param decide decides about a request that takes as much as so many
 */
export function togetherAtLevels(
  { clock, PolicyDecision, combined }: LevelsHost,
  levels: readonly Level[],
  key: string,
  wanted: Wanted,
  decide: (many: number) => Decision | Promise<Decision>,
): Together<Decision> | undefined {
  const now = clock.monotonic()
  let [part, fit, roundTrip] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0]
  let asks = false
  for (const { limiter, key, cost } of levels) {
    const { meter, policy } = limiter
    const slot = policy.dryRun || policy.next || !(cost > 0) ? -1 : limiter.locate(key)
    if (slot < 0) return undefined
    if (policy.coordination === 'central') {
      if (meter.grouping?.asks(slot, cost, now) !== true) return undefined
      asks = true
    } else if (!countsAtOnce(limiter) || !meter.admits(slot, cost, now, false)) return undefined
    const { nodes = 1, roundTrip: own = 0 } = policy.coordination === 'local' ? {} : (meter.syncing ?? {})
    const left = meter.remaining(slot, now) / cost
    fit = Math.min(fit, left)
    part = Math.min(part, left / (2 * nodes - 1))
    roundTrip = Math.max(roundTrip, own)
  }
  if (!asks) return undefined
  const take = async ({ length }: readonly number[]): Promise<readonly Decision[]> => {
    const whole = await decide(length)
    if (!whole.allowed) return []
    const parts = whole.parts as readonly PolicyDecision[]
    // As if they had been asked for one after another.
    return Array.from({ length }, (_, at) => {
      const own = parts.map((part) => {
        const cost = part.cost / length
        return new PolicyDecision(part.outcome, part.key, part.remaining + (length - 1 - at) * cost, part.resetAfter, cost)
      })
      return combined(own)
    })
  }
  return {
    part: Math.floor(part),
    fit: Math.floor(fit),
    cost: 1,
    lead: LEAD + 2 * roundTrip,
    ahead: undefined,
    costBeside: (other, beside) => (other === key && isLike(beside, wanted) ? 1 : undefined),
    take,
  }
}

/** Whether what fits of a policy that is decided here goes at once. */
function countsAtOnce({ policy, meter }: Limiter): boolean {
  const { algorithm, coordination } = policy
  return (coordination === 'local' || coordination === 'background') && algorithm.most === undefined && meter.reserving === undefined
}
