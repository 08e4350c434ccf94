import type { Algorithm } from '@weir/core'

/**
 * The definition of an algorithm for one key, written as plainly as possible: it may store every request. Times are milliseconds since the
 * Unix epoch and never go back.
 */
export interface AlgorithmModel {
  /** The most units that a request may take now; of a key without a history it is what such a key may take at once. */
  most(at: number, limit: number): number
  /** Units that a request certainly gets, where the algorithm may reject what its definition would allow. Default: `most`. */
  least?(at: number, limit: number): number
  /** Units are counted: a request was allowed, or a charge came. */
  take(at: number, units: number): void
  /** A request was rejected. Only for algorithms that remember it. */
  rejected?(at: number): void
  /** Units are given back that a request took at `takenAt`. */
  refund(at: number, units: number, takenAt: number): void
}

/** An algorithm, and what it shall do. */
export interface AlgorithmUnderTest {
  readonly algorithm: Algorithm
  /**
   * Makes the model of one key.
   *
   * @param interval of the policy, in milliseconds
   */
  model(interval: number): AlgorithmModel
}
