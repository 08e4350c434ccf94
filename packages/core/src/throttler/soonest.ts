import type { Limiter } from '../decide/limiter.ts'
import { peekOne } from '../decide/peek.ts'
import { delayOf } from './bucket-delay.ts'

/**
 * Milliseconds until a policy can have allowed this many units. If the store counts them ahead, that follows from the bucket's level.
 * Otherwise they go a few at a time: if they don't fit immediately, they wait for whole rounds, each of which frees as many units as fit.
 *
 * @param ahead whether the policy may reserve ahead for them
 */
export function soonest(limiter: Limiter, key: string, units: number, given: number | undefined, ahead: boolean, now: number): number {
  const { policy, table, blocks } = limiter
  if (policy.dryRun) return 0
  const limit = limiter.limitFor(key, given)
  if (limit === Number.POSITIVE_INFINITY) return 0
  const { reservations } = limiter.meter
  const slot = ahead && limit > 0 ? table.find(key) : -1
  const level = slot < 0 || blocks.of(slot, now) !== undefined ? undefined : reservations?.levelAhead?.(slot, now)
  if (level !== undefined) return delayOf(policy, limit, (reservations?.isFresh?.(slot, now) === false ? 0 : level) + units)
  const most = limiter.most(limit)
  if (!(most > 0)) return Number.POSITIVE_INFINITY
  const rounds = Math.ceil(units / most) - 1
  const round = (policy.interval * most) / limit
  const rest = peekOne(limiter, key, units - rounds * most, given, now)
  if (!rest.allowed) return rest.retryAfterMs + rounds * round
  if (rounds === 0) return 0
  const whole = peekOne(limiter, key, most, given, now)
  return (whole.allowed ? 0 : whole.retryAfterMs) + (rounds - 1) * round
}
