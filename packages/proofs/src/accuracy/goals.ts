import { bucketEarlyDropGoals } from './bucket-early-drop.ts'
import { bucketFaultGoals } from './bucket-faults.ts'
import { bucketSteadyGoals } from './bucket-steady.ts'
import { bucketWaitingGoals } from './bucket-waiting.ts'
import { budgetGoals } from './budgets.ts'
import { attackGoals } from './fixed-attacks.ts'
import { faultGoals } from './fixed-faults.ts'
import { steadyGoals } from './fixed-steady.ts'
import { fleetGoals } from './fleet-starts.ts'
import { freezeGoals } from './freezes.ts'
import type { Goal } from './goal.ts'
import { partitionGoals } from './half-cut-off.ts'
import { hangGoals } from './hangs.ts'
import { hangAndKillGoals } from './hangs-and-kills.ts'
import { burstGoals } from './honest-bursts.ts'
import { leaseGoals } from './leases.ts'
import { slidingAttackGoals } from './sliding-attacks.ts'
import { slidingSteadyGoals } from './sliding-steady.ts'
import { volleyGoals } from './volleys.ts'
import { weightGoals } from './weights.ts'

/**
 * All goals: 1 to 22, S1 to S15, N1 to N10 for both windows, H1 to H4 for hangs, starts and honest bursts, B2 to B20 for buckets,
 * L1 to L7 for leases, R1 to R4 for reservations, and F1 for frozen processes.
 */
export const GOALS: readonly Goal[] = [
  ...steadyGoals,
  ...attackGoals,
  ...faultGoals,
  ...slidingSteadyGoals,
  ...slidingAttackGoals,
  ...weightGoals,
  ...hangAndKillGoals,
  ...partitionGoals,
  ...hangGoals,
  ...fleetGoals,
  ...volleyGoals,
  ...burstGoals,
  ...bucketSteadyGoals,
  ...bucketFaultGoals,
  ...bucketEarlyDropGoals,
  ...bucketWaitingGoals,
  ...leaseGoals,
  ...budgetGoals,
  ...freezeGoals,
].sort((one, other) => rank(one.id) - rank(other.id))

function rank(id: string): number {
  if (id.startsWith('B')) return 3000 + Number(id.slice(1))
  if (id.startsWith('F')) return 6000 + Number(id.slice(1))
  if (id.startsWith('R')) return 5000 + Number(id.slice(1))
  if (id.startsWith('L')) return 4000 + Number(id.slice(1))
  if (id.startsWith('N')) return 2000 + Number(id.slice(1))
  if (id.startsWith('H')) return 2500 + Number(id.slice(1))
  return id.startsWith('S') ? 1000 + Number(id.slice(1)) : Number(id)
}
