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
 * No more than the limit in any stretch of the interval's length, exactly: the time of each request is kept until it leaves. That
 * takes 8 bytes for each request of the last interval, and 16 where some take more or less than one unit, in a ring that doubles when it
 * is full: up to `16 · limit` or `32 · limit` bytes and about 110 more for each key (with costs of less than 1, at most `limit` times or
 * 64 are kept); `slidingWindow()` is within 2 % of it for a fixed size.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`: it has no options
 */
export function slidingLog(...none: readonly []): Algorithm {
  checkAlgorithmOptions('slidingLog', none.at(0) ?? {}, [])
  return SLIDING_LOG
}
