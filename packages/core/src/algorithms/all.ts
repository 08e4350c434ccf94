import type { AtomicStep } from '../store/step.ts'
import type { Algorithm, SlotAlgorithm } from './algorithm.ts'
import { BUCKET_STEP } from './bucket/step.ts'
import { concurrency } from './concurrency/index.ts'
import { CALENDAR_STEP } from './fixed-window/calendar-step.ts'
import { EPOCH_STEP } from './fixed-window/epoch-step.ts'
import { FIRST_REQUEST_STEP } from './fixed-window/first-request-step.ts'
import { fixedWindow } from './fixed-window/index.ts'
import { leakyBucket } from './leaky-bucket/index.ts'
import { slidingCounter } from './sliding-counter/index.ts'
import { SLIDING_COUNTER_STEP } from './sliding-counter/step.ts'
import { slidingLog } from './sliding-log/index.ts'
import { SLIDING_LOG_STEP } from './sliding-log/step.ts'
import { slidingWindow } from './sliding-window/index.ts'
import { slidingWindowStep } from './sliding-window/step.ts'
import { tokenBucket } from './token-bucket/index.ts'
import { WARM_UP_STEP } from './token-bucket/warm-up-step.ts'

/*
 * All algorithms of this package. Only code that needs every one of them imports this file. Stores, throttlers and the sync don't, so that
 * an application carries only the algorithms that it uses.
 */

/**
 * All built-in algorithms, by the names that rules use. An application that imports this list carries all of them.
 *
 * @example
 * follow(throttler, fileRules('rules.json'), { algorithms })
 */
export const ALGORITHMS: Readonly<Record<string, (options?: never) => Algorithm | SlotAlgorithm>> = {
  fixedWindow,
  slidingWindow,
  slidingCounter,
  slidingLog,
  tokenBucket,
  leakyBucket,
  concurrency,
}

/** The ids of the steps in `STEPS`. A list of its own, because a process that only sends them needs none of the code. */
export const STEP_IDS = [
  'fixed-window',
  'calendar',
  'fixed-window-first-request',
  'sliding-window',
  'sliding-counter',
  'sliding-log',
  'bucket',
  'bucket-warm-up',
] as const

/** A step by which a process decides for another process. */
export interface BuiltInStep {
  /** The step for the other process's parameters: numbers of at least -1 after the interval. Undefined if they are out of its range. */
  by(parameters: readonly number[]): AtomicStep | undefined
  /** The parameters that the state of a key depends on, if requests may differ in the others. Default: all. */
  stateBy?(parameters: readonly number[]): readonly number[]
  /** A limit beyond which a decision takes too long for other processes to wait. */
  readonly mostLimit?: number
}

/** The steps by which a process can decide for others. */
export const STEPS: Readonly<Record<(typeof STEP_IDS)[number], BuiltInStep>> = {
  'fixed-window': { by: () => EPOCH_STEP },
  calendar: { by: () => CALENDAR_STEP },
  'fixed-window-first-request': { by: () => FIRST_REQUEST_STEP },
  'sliding-window': {
    by: ([, subWindows = 0]) =>
      Number.isInteger(subWindows) && subWindows >= 6 && subWindows <= 120 ? slidingWindowStep(subWindows) : undefined,
  },
  'sliding-counter': { by: () => SLIDING_COUNTER_STEP },
  // The step visits each time of the log.
  'sliding-log': { by: () => SLIDING_LOG_STEP, mostLimit: 100_000 },
  bucket: {
    by: ([, , , usual = 0]) => (usual >= 0 ? BUCKET_STEP : undefined),
    // Buckets of all sizes count units ahead on the same state.
    stateBy: ([interval = 0]) => [interval],
  },
  'bucket-warm-up': {
    by: ([, , warmUp = 0, coldFactor = 0, usual = 0]) => (warmUp > 0 && coldFactor > 1 && usual >= 0 ? WARM_UP_STEP : undefined),
    stateBy: ([interval = 0, , warmUp = 0, coldFactor = 0]) => [interval, warmUp, coldFactor],
  },
}
