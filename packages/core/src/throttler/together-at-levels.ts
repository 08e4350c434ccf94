import { countsAtStore, isDecidedByStore, isSyncedEarly } from '../decide/coordination.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import { leadOf, ownPart } from '../queue/call-size.ts'
import type { Together } from '../queue/gate.ts'
import { isLike, type Wanted } from '../queue/options.ts'
import type { Clock } from '../time/clock.ts'

/** A request's key and cost for one policy. */
interface Level {
  readonly limiter: Limiter
  readonly key: string
  readonly cost: number
}

/**
 * Sends requests together that several policies count, if the store decides for at least one. There is one call for each key, with the
 * units of all requests. Undefined if each request is sent alone: with `dryRun`, and for a policy that takes units ahead or delays
 * requests.
 *
 * @param wanted the first of them, whose key is `key`
 * @param decide decides a request that costs as much as `many` of them
 */
export function togetherAtLevels(
  clock: Clock,
  levels: readonly Level[],
  key: string,
  wanted: Wanted,
  decide: (many: number) => Decision | Promise<Decision>,
): Together<Decision> | undefined {
  const now = clock.monotonic()
  let [part, fit, roundTrip] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0]
  for (const { limiter, key, cost } of levels) {
    const { meter, policy } = limiter
    const slot = policy.dryRun || policy.candidate || !(cost > 0) ? -1 : limiter.locate(key)
    if (slot < 0) return undefined
    const asks = isDecidedByStore(policy)
      ? meter.reservations?.needsStore(slot, cost, now) === true
      : countsAtOnce(limiter) && meter.allows(slot, cost, now, false)
    if (!asks) return undefined
    const { nodes = 1, roundTrip: own = 0 } = countsAtStore(policy) ? (meter.syncing ?? {}) : {}
    const left = meter.remaining(slot, now) / cost
    fit = Math.min(fit, left)
    part = Math.min(part, ownPart(left, nodes))
    roundTrip = Math.max(roundTrip, own)
  }
  const take = async ({ length }: readonly number[]): Promise<readonly Decision[]> => {
    const whole = await decide(length)
    if (!whole.allowed) return []
    const parts = whole.parts as readonly PolicyDecision[]
    // The decisions look as if requests were decided one after another.
    return Array.from({ length }, (_, at) => {
      const own = parts.map((part) => {
        const cost = part.cost / length
        return new PolicyDecision(part.outcome, part.key, part.remaining + (length - 1 - at) * cost, part.resetAfterMs, cost)
      })
      return combined(own)
    })
  }
  return {
    part: Math.floor(part),
    fit: Math.floor(fit),
    cost: 1,
    lead: leadOf(roundTrip),
    ahead: undefined,
    costBeside: (other, beside) => (other === key && isLike(beside, wanted) ? 1 : undefined),
    take,
  }
}

/**
 * The policy that reserves ahead for a request, while the others decide at the reserved time: a policy of the store, which delays requests.
 * Undefined without one, or if another policy has no capacity now, or a pace of its own.
 */
export function pacerOf<L extends Level>(levels: readonly L[], now: number): L | undefined {
  const pacer = levels.find(({ limiter, key }) => {
    const slot = limiter.policy.dryRun || limiter.policy.candidate ? -1 : limiter.locate(key)
    return slot >= 0 && limiter.meter.reservations?.levelAhead?.(slot, now) !== undefined
  })
  const fits = (level: L) => {
    const { policy } = level.limiter
    if (level === pacer) return true
    return policy.algorithm.delay === undefined && (policy.dryRun || policy.candidate || hasRoom(level, now))
  }
  return pacer === undefined || !levels.every(fits) ? undefined : pacer
}

/** Whether a policy allows a request, or may get units for it from the store. */
export function hasRoom({ limiter, key, cost }: Level, now: number): boolean {
  const { meter } = limiter
  const slot = limiter.locate(key)
  if (slot < 0) return false
  return (isLeased(limiter) && meter.reservations?.needsStore(slot, cost, now) === true) || meter.allows(slot, cost, now, false)
}

/** Whether the process takes quota ahead, and requests wait for units of it. */
export function isLeased({ meter }: Limiter): boolean {
  return meter.reservations?.leased === true
}

/**
 * Reserves ahead for requests at one of their policies, while the others decide at the reserved time.
 *
 * @param one reserves them
 * @param isPart receives each decision that is of this policy alone
 */
export function paced(
  clock: Clock,
  one: Together<Decision>,
  levels: readonly Level[],
  pacer: Level,
  isPart: (decision: Decision) => void,
): Together<Decision> {
  const now = clock.monotonic()
  let room = Number.POSITIVE_INFINITY
  for (const level of levels) {
    const { limiter, key, cost } = level
    const { meter, policy } = limiter
    if (level === pacer || policy.dryRun || policy.candidate || isLeased(limiter)) continue
    room = Math.min(room, meter.remaining(limiter.locate(key), now) / cost)
  }
  const { ahead } = one
  return {
    ...one,
    // Further ones would come back without being used.
    ahead: ahead && { ...ahead, unitsOf: (waiting) => Math.max(1, Math.min(room, ahead.unitsOf(waiting) / one.cost)) * one.cost },
    take: async (costs, within) => {
      const decisions = await one.take(costs, within)
      decisions.forEach(isPart)
      return decisions
    },
  }
}

/** Whether this process decides for the policy, and allows all fitting requests immediately. */
function countsAtOnce(limiter: Limiter): boolean {
  const { policy } = limiter
  return (!countsAtStore(policy) || isSyncedEarly(policy)) && policy.algorithm.most === undefined && !isLeased(limiter)
}
