import type { Limiter } from '../decide/limiter.ts'
import { peekOne } from '../decide/peek.ts'
import { delayOf } from './together.ts'

/**
 * Milliseconds until a policy can have allowed this many units, a few at a time. If they don't fit immediately, they wait for whole rounds,
 * each of which frees as many units as fit.
 */
export function soonest(limiter: Limiter, key: string, units: number, limit: number | undefined, now: number): number {
  const { policy } = limiter
  if (policy.dryRun) return 0
  const own = limiter.limitFor(key, limit)
  if (own === Number.POSITIVE_INFINITY) return 0
  const most = limiter.most(own)
  if (!(most > 0)) return Number.POSITIVE_INFINITY
  const rounds = Math.ceil(units / most) - 1
  const round = (policy.interval * most) / own
  const rest = peekOne(limiter, key, units - rounds * most, limit, now)
  if (!rest.allowed) return rest.retryAfterMs + rounds * round
  if (rounds === 0) return 0
  const whole = peekOne(limiter, key, most, limit, now)
  return (whole.allowed ? 0 : whole.retryAfterMs) + (rounds - 1) * round
}

/** Does the same as `soonest`, for requests whose units the store counts ahead. Undefined for others. */
export function soonestAhead(limiter: Limiter, key: string, units: number, given: number | undefined, now: number): number | undefined {
  const { policy, table, meter } = limiter
  const slot = policy.dryRun ? -1 : table.find(key)
  const level = slot < 0 || limiter.blocks.of(slot, now) !== undefined ? undefined : meter.reservations?.levelAhead?.(slot, now)
  const limit = limiter.limitFor(key, given)
  if (level === undefined || !(limit > 0) || limit === Number.POSITIVE_INFINITY) return undefined
  return delayOf(policy, limit, (meter.reservations?.isFresh?.(slot, now) === false ? 0 : level) + units)
}
