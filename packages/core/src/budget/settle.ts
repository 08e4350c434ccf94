import type { Held } from '../algorithms/holds.ts'
import type { PolicyDecision } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import { idOfKey } from '../keys/key-id.ts'

/** The throttler whose counts are corrected. */
export interface SettleHost {
  readonly limiters: readonly Limiter[]
  /** Rolls a limiter to the running interval. */
  roll(limiter: Limiter, now: number): void
  /** A policy's key may have capacity again. */
  freed(policy: Policy, key: string): void
}

/**
 * Counts the units that one part of a reservation really used, instead of the reserved ones.
 *
 * @param held the reservation as the store has it. Undefined if only this process has it
 * @param isLate whether the store has settled it after its ttl, before this process did
 * @param charge counts more units of a key, whether or not they fit
 */
export function settlePart(
  part: PolicyDecision,
  used: number,
  held: Held | undefined,
  isLate: boolean,
  now: number,
  host: SettleHost,
  charge: (limiter: Limiter, key: string, units: number, now: number) => void,
): void {
  const { policy, key, ordinal, cost: reserved } = part
  const limiter = policy && host.limiters.find(({ policy: { id } }) => id === policy.id)
  if (policy === undefined || limiter === undefined) return
  if (now >= limiter.meter.rollAt) host.roll(limiter, now)
  const { meter } = limiter
  const { holds } = meter
  part.amount = Math.min(reserved, used)
  let counted = reserved
  // A reset has already returned the reserved units, at the store too.
  let returns = !limiter.resets.since(idOfKey(key), part.serial)
  if (held !== undefined && holds !== undefined && returns) {
    // The store does not know that a refund has returned a part of the reserved units.
    const refunded = held.units - reserved
    if (!holds.isOpen(held, now)) {
      // If its interval has ended before, all reserved units counted there.
      if (isLate) counted = held.due - refunded
      returns = false
    } else if (holds.settle(key, ordinal, held, used + refunded, now)) {
      if (used < reserved) host.freed(policy, key)
      return
    }
  }
  if (used > counted) charge(limiter, key, used - counted, now)
  else if (used < counted && returns) {
    meter.refund(key, ordinal, counted - used, now)
    host.freed(policy, key)
  }
}
