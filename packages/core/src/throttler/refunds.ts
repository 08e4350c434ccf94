import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { type Counter, NO_SLOT } from '../decide/limiter.ts'

/**
 * Gives units of an allowed decision back, at most what is left of its cost at each policy.
 *
 * @param roll brings a counter to the running interval
 */
export function refund(
  decision: Decision,
  units: number,
  counters: readonly Counter[],
  now: number,
  roll: (counter: Counter, now: number) => void,
): void {
  for (const part of decision.parts) {
    if (!(part instanceof PolicyDecision) || part.policy === undefined) continue
    const back = Math.min(units, part.cost)
    const { id } = part.policy
    const counter = counters.find(({ policy }) => policy.id === id)
    if (!(back > 0) || counter === undefined) continue
    part.cost -= back
    if (now >= counter.rollAt) roll(counter, now)
    counter.giveBack(part.key, part.ordinal, back, now)
  }
}

/** Counts more units for an allowed decision, whether or not they fit. All counters must be at `now`. */
export function charge(decision: Decision, units: number, counters: readonly Counter[], now: number): void {
  for (const part of decision.parts) {
    const counter = counters.find(({ policy }) => policy.name === part.policy?.name)
    const slot = counter?.locate(part.key) ?? NO_SLOT
    if (counter === undefined || slot < 0 || !part.allowed || part.dryRun) continue
    counter.admits(slot, units, now)
    counter.take(slot, units)
  }
}
