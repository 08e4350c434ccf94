import { checkAlgorithmOptions } from '../../report/names.ts'
import type { Algorithm } from '../algorithm.ts'
import { LocalSlidingLog } from './local.ts'
import { SLIDING_LOG_STEP } from './step.ts'

const SLIDING_LOG: Algorithm = Object.freeze({
  name: 'slidingLog()',
  id: 'sliding-log',
  fields: 2,
  local: (site) => new LocalSlidingLog(site),
  step: SLIDING_LOG_STEP,
} satisfies Algorithm)

/**
 * Allows at most the limit in any stretch of the interval's length, exactly: the time of each request is kept until it leaves. A request of
 * the last interval takes 8 bytes, or 16 if some requests cost more or less than one unit, in a ring that doubles when it is full: up to
 * `16 · limit` or `32 · limit` bytes and about 110 more for each key. With costs below 1, at most `limit` or 64 times are kept, whichever
 * is more. `slidingWindow()` is within 2 % of it for a fixed size.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`: it has no options
 */
export function slidingLog(...none: readonly []): Algorithm {
  checkAlgorithmOptions('slidingLog', none.at(0) ?? {}, [])
  return SLIDING_LOG
}
