import { attackGoals } from './fixed-attacks.ts'
import { faultGoals } from './fixed-faults.ts'
import { steadyGoals } from './fixed-steady.ts'
import type { Goal } from './goal.ts'
import { slidingAttackGoals } from './sliding-attacks.ts'
import { slidingSteadyGoals } from './sliding-steady.ts'

/** All goals: 1 to 22, then S1 to S15. */
export const GOALS: readonly Goal[] = [...steadyGoals, ...attackGoals, ...faultGoals, ...slidingSteadyGoals, ...slidingAttackGoals].sort(
  (one, other) => rank(one.id) - rank(other.id),
)

function rank(id: string): number {
  return id.startsWith('S') ? 1000 + Number(id.slice(1)) : Number(id)
}
