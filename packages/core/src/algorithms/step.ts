import type { AtomicStep } from '../store/step.ts'
import type { MeterPolicy } from './meter.ts'

export type { Verdict } from '../store/step.ts'

/** What a store does for each request of a policy, in one atomic step. */
export interface Step extends AtomicStep {
  /** What the script needs to know of a policy beside the limit: its interval, first of all. */
  parameters(policy: MeterPolicy): readonly number[]
}
