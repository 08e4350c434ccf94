import { BUCKET } from './algorithms/bucket.ts'
import { CALENDAR } from './algorithms/calendar.ts'
import { FIRST_REQUEST } from './algorithms/first-request.ts'
import { FIXED_WINDOW } from './algorithms/fixed-window.ts'
import type { ServerAlgorithm } from './algorithms/server-algorithm.ts'
import { SLIDING_COUNTER } from './algorithms/sliding-counter.ts'
import { SLIDING_LOG } from './algorithms/sliding-log.ts'
import { SLIDING_WINDOW } from './algorithms/sliding-window.ts'
import { WARM_UP } from './algorithms/warm-up.ts'
import type { StepId } from './decides.ts'

/** The algorithms that a server can decide by, by the name of the step. */
export const ALGORITHMS: Readonly<Record<string, ServerAlgorithm>> = {
  'fixed-window': FIXED_WINDOW,
  calendar: CALENDAR,
  'fixed-window-first-request': FIRST_REQUEST,
  'sliding-window': SLIDING_WINDOW,
  'sliding-counter': SLIDING_COUNTER,
  'sliding-log': SLIDING_LOG,
  bucket: BUCKET,
  'bucket-warm-up': WARM_UP,
} satisfies Readonly<Record<StepId, ServerAlgorithm>>
