import type { AtomicStep } from '../store/step.ts'
import type { MeterPolicy } from './meter.ts'

export type { Verdict } from '../store/step.ts'

/** The decision of a store about each request of a policy, as one atomic step. */
export interface Step extends AtomicStep {
  /** A bucket: the key's usual limit may follow the parameters, if a request has another one. */
  readonly paced?: true
  /** The numbers that the script needs of a policy beside the limit, its interval first. */
  parameters(policy: MeterPolicy): readonly number[]
  /**
   * For units that leave evenly: parameters, made from the policy's, with which `take` also counts units that fit only later, as long as
   * there are no more than `most`. The verdict's `resetAfterMs` is then the time until the last of them leaves. Undefined if that time
   * can't be computed.
   */
  readonly ahead?: (parameters: readonly number[], most: number) => readonly number[]
}
