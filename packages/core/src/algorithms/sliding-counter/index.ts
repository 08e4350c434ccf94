import { checkAlgorithmOptions } from '../../report/names.ts'
import type { Algorithm } from '../algorithm.ts'
import { LocalSlidingCounter } from './local.ts'
import { SLIDING_COUNTER_STEP } from './step.ts'

const SLIDING_COUNTER: Algorithm = Object.freeze({
  name: 'slidingCounter()',
  id: 'sliding-counter',
  fields: 3,
  local: (site, { localTime }) => new LocalSlidingCounter(site, localTime),
  shape: { kind: 'two-windows', coordinations: ['periodic'] },
  step: SLIDING_COUNTER_STEP,
} satisfies Algorithm)

/**
 * The weighted counter of two fixed windows (Cloudflare 2017, "How we built rate limiting capable of scaling to millions of domains"):
 * `previous · (1 − elapsed) + current`. It assumes that the previous interval's requests came evenly. In an attack that doesn't, up to
 * nearly twice the limit is allowed in one interval's length.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`: it has no options
 */
export function slidingCounter(...none: readonly []): Algorithm {
  checkAlgorithmOptions('slidingCounter', none.at(0) ?? {}, [])
  return SLIDING_COUNTER
}
