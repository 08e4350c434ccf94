import type { Algorithm } from '@weir/core'

/**
 * The definition of an algorithm for one key, written as plainly as possible: it may store every request. Times are milliseconds since the
 * Unix epoch and never go back.
 */
export interface AlgorithmModel {
  /** Returns the most units that a request may take now. For an unused key it is the most that a key can take at once. */
  most(at: number, limit: number): number
  /**
   * Returns the units that a request certainly gets, if the algorithm may reject requests that its definition would allow. Default:
   * `most`.
   */
  least?(at: number, limit: number): number
  /** Records units that are counted: a request was allowed, or a charge came. */
  take(at: number, units: number): void
  /** Records a rejected request. Only for algorithms that remember rejections. */
  rejected?(at: number): void
  /** Gives back units that a request took at `takenAt`. */
  refund(at: number, units: number, takenAt: number): void
}

/** An algorithm, and the model of its definition. */
export interface AlgorithmUnderTest {
  readonly algorithm: Algorithm
  /**
   * Makes the model of one key.
   *
   * @param interval the policy's interval, in milliseconds
   */
  model(interval: number): AlgorithmModel
}
