export const CONTENDERS = ['weir', 'p-throttle', 'limiter', 'bottleneck'] as const

/** A flood of requests that wait in one process. */
export interface CostInput {
  readonly contender: (typeof CONTENDERS)[number]
  /** All made at once. */
  readonly requests: number
  /** How many may go in each quarter of a second. */
  readonly limit: number
  /** Keys that they are spread over; more than one only for Weir. */
  readonly keys: number
}

export interface CostResult {
  /** Microseconds of CPU time for a request. */
  readonly cpu: number
  /** Bytes that are held for each request while all wait; only with `--expose-gc`. */
  readonly bytes: number
}
