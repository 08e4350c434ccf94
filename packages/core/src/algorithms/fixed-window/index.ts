import { checkAlgorithmOptions } from '../../options/names.ts'
import { invalidOption } from '../../report/errors.ts'
import type { Algorithm } from '../algorithm.ts'
import { FIXED_WINDOW } from './epoch.ts'
import { EPOCH_STEP } from './epoch-step.ts'
import { LocalFirstRequestWindow } from './first-request.ts'
import { FIRST_REQUEST_STEP } from './first-request-step.ts'

/** Where windows begin. */
export interface FixedWindowOptions {
  /**
   * `'epoch'` (default): at whole intervals of the Unix epoch, for all keys at once and at all nodes alike; `'first-request'`: with a
   * key's first request after its last window, as rate limiters of one process mostly do.
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
 * At most the limit in each interval, of the Unix epoch or from a key's first request: the default. Around an interval's end up to
 * twice the limit may pass within one interval's length.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function fixedWindow(options: FixedWindowOptions = {}): Algorithm {
  checkAlgorithmOptions('fixedWindow', options, ['start'], '{ start: "first-request" }')
  const { start = 'epoch' } = options
  if (start !== 'epoch' && start !== 'first-request') throw invalidOption('start', start, '"epoch" or "first-request"')
  return start === 'epoch' ? EPOCH : FIRST_REQUEST
}
