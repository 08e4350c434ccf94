import type { AlgorithmRun } from './run.ts'

/** One behaviour of the algorithm contract. */
export interface AlgorithmCase {
  readonly title: string
  run(run: AlgorithmRun): Promise<void>
}

/** Steps of a run: enough to fill and empty a few intervals. */
export const STEPS = 40
