import fc from 'fast-check'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'

/** Algorithms whose requests never exceed the limit, so that a model can show which requests may be allowed. */
export const exactAlgorithms: fc.Arbitrary<Algorithm> = fc.constantFrom(
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow({ subWindows: 6 }),
  slidingLog(),
  tokenBucket({ burst: 4 }),
)

/** The exact algorithms, and one with a pace. */
export const anyAlgorithm: fc.Arbitrary<Algorithm> = fc.oneof(
  { weight: 5, arbitrary: exactAlgorithms },
  { weight: 1, arbitrary: fc.constant(leakyBucket({ burst: 3 })) },
)

/** The milliseconds from a request to the next one, and its cost. */
export const arrival: { readonly after: fc.Arbitrary<number>; readonly cost: fc.Arbitrary<number> } = {
  after: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 400 })),
  cost: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 4 })),
}
