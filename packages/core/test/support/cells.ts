import type { AnyAlgorithm, Coordination } from '../../src/algorithms/algorithm.ts'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'

/** All supported pairs of an algorithm and a coordination. */
const CELLS: readonly (readonly [algorithm: AnyAlgorithm, ...coordinations: Coordination[]])[] = [
  [fixedWindow(), 'local', 'background', 'periodic', 'leased', 'central'],
  [fixedWindow({ start: 'first-request' }), 'local', 'central'],
  [slidingWindow(), 'local', 'background', 'central'],
  [slidingCounter(), 'local', 'periodic', 'central'],
  [tokenBucket(), 'local', 'background', 'central'],
  // The warm-up is so short and slight that units cost the same as anywhere else.
  [tokenBucket({ warmUp: { duration: 1, coldFactor: 1.0001 } }), 'local', 'central'],
  [leakyBucket(), 'local', 'background', 'central'],
  [slidingLog(), 'local', 'central'],
  [concurrency(), 'local', 'leased'],
]

/** As objects, for `test.each`. */
export const EACH_CELL = CELLS.flatMap(([algorithm, ...coordinations]) =>
  coordinations.map((coordination) => ({ algorithm, name: algorithm.name, coordination })),
)
