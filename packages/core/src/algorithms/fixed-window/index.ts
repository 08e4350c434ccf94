import { invalidOption } from '../../report/errors.ts'
import { checkAlgorithmOptions } from '../../report/names.ts'
import type { Algorithm } from '../algorithm.ts'
import { FIXED_WINDOW } from './epoch.ts'
import { EPOCH_STEP } from './epoch-step.ts'
import { LocalFirstRequestWindow } from './first-request.ts'
import { FIRST_REQUEST_STEP } from './first-request-step.ts'

/** Options of `fixedWindow`. */
export interface FixedWindowOptions {
  /**
   * Starts windows at whole intervals of the Unix epoch, or with a key's first request after its last window.
   *
   * - `'epoch'`: at the same time for all keys and in all processes.
   * - `'first-request'`: as in most rate limiters of one process. Only with coordination `'local'` and `'central'`, and not with
   *   `calendar()`.
   *
   * @default 'epoch'
   */
  readonly start?: 'epoch' | 'first-request'
}

const EPOCH: Algorithm = Object.freeze({ ...FIXED_WINDOW, step: EPOCH_STEP })

const FIRST_REQUEST: Algorithm = Object.freeze({
  name: "fixedWindow({ start: 'first-request' })",
  id: 'fixed-window-first-request',
  fields: 2,
  local: (site) => new LocalFirstRequestWindow(site),
  step: FIRST_REQUEST_STEP,
} satisfies Algorithm)

/**
 * At most the limit in each interval, of the Unix epoch or from a key's first request: the default. Around the end of an interval, up to
 * twice the limit may be allowed within one interval's length.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function fixedWindow(options: FixedWindowOptions = {}): Algorithm {
  checkAlgorithmOptions('fixedWindow', options, ['start'], '{ start: "first-request" }')
  const { start = 'epoch' } = options
  if (start !== 'epoch' && start !== 'first-request') throw invalidOption('start', start, '"epoch" or "first-request"')
  return start === 'epoch' ? EPOCH : FIRST_REQUEST
}
