import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { idOfKey, type Limiter, NO_SLOT } from '../decide/limiter.ts'

/**
 * Refunds units of an allowed decision, at most what is left of its cost at each policy.
 *
 * @param roll brings a limiter to the running interval
 */
export function refund(
  decision: Decision,
  units: number,
  limiters: readonly Limiter[],
  now: number,
  roll: (limiter: Limiter, now: number) => void,
): void {
  for (const part of decision.parts) {
    if (!(part instanceof PolicyDecision) || part.policy === undefined) continue
    const back = Math.min(units, part.cost)
    const { id } = part.policy
    const limiter = limiters.find(({ policy }) => policy.id === id)
    if (!(back > 0) || limiter === undefined) continue
    part.cost -= back
    if (now >= limiter.meter.rollAt) roll(limiter, now)
    // A reset has given them back already.
    if (limiter.resets.since(idOfKey(part.key), part.serial)) continue
    limiter.meter.refund(part.key, part.ordinal, back, now)
  }
}

/** Counts more units for an allowed decision, whether or not they fit. All limiters must be at `now`. */
export function charge(decision: Decision, units: number, limiters: readonly Limiter[], now: number): void {
  for (const part of decision.parts) {
    const limiter = limiters.find(({ policy }) => policy.name === part.policy?.name)
    const slot = limiter?.locate(part.key) ?? NO_SLOT
    if (limiter === undefined || slot < 0 || !part.allowed || part.dryRun) continue
    const fits = limiter.meter.admits(slot, units, now)
    limiter.meter.add(slot, units, now)
    if (!fits) limiter.meter.exceeded?.(slot, now)
  }
}
