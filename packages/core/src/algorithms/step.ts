import type { AtomicStep } from '../store/step.ts'
import type { MeterPolicy } from './meter.ts'

export type { Verdict } from '../store/step.ts'

/** What a store does for each request of a policy, in one atomic step. */
export interface Step extends AtomicStep {
  /** A bucket: parameters may be followed by the key's usual limit, where a request has another one. */
  readonly paced?: true
  /** What the script needs to know of a policy beside the limit: its interval, first of all. */
  parameters(policy: MeterPolicy): readonly number[]
  /**
   * Of steps whose units leave evenly: parameters, made of those of a policy, by which `take` counts units ahead that find room only later,
   * as long as there are no more than `most`. The verdict's `resetAfterMs` says then until when the last of them stays. Undefined where nobody
   * can say when that is.
   */
  readonly ahead?: (parameters: readonly number[], most: number) => readonly number[]
}
