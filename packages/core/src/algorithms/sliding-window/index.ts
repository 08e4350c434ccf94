import { checkAlgorithmOptions } from '../../options/names.ts'
import { invalidOption } from '../../report/errors.ts'
import type { Algorithm } from '../algorithm.ts'
import { later } from '../shared/later.ts'
import { LocalSlidingWindow } from './local.ts'
import { slidingWindowStep } from './step.ts'

/** How a sliding window is kept. */
export interface SlidingWindowOptions {
  /** Parts of the interval that counts are kept in. Whole number, 6 to 120; one is at least 5 ms. Default 30. */
  readonly subWindows?: number
  /**
   * A key that reached its limit is open again when this part of the limit is free; more than 0, at most 1. Smaller allows
   * more under constant overload and costs more exchanges. With coordination `'local'`, which has none, a key is open as
   * soon as a request fits. Default 0.1.
   */
  readonly reopenAt?: number
}

const BACKGROUND = later(async () => (await import('./shared.ts')).backgroundSlidingWindow)

/** What `slidingWindow` makes. */
export interface SlidingWindow extends Algorithm, Readonly<Required<SlidingWindowOptions>> {
  readonly subWindows: number
}

/**
 * No more than the limit in any stretch of the interval's length.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function slidingWindow(options: SlidingWindowOptions = {}): SlidingWindow {
  checkAlgorithmOptions('slidingWindow', options, ['subWindows', 'reopenAt'], '{ subWindows: 60 }')
  const { subWindows = 30, reopenAt = 0.1 } = options
  if (!Number.isInteger(subWindows) || subWindows < 6 || subWindows > 120) {
    throw invalidOption('subWindows', subWindows, 'a whole number from 6 to 120')
  }
  if (typeof reopenAt !== 'number' || !(reopenAt > 0 && reopenAt <= 1)) {
    throw invalidOption('reopenAt', reopenAt, 'a number greater than 0 and at most 1')
  }
  const shape = { subWindows, reopenAt }
  return Object.freeze({
    name: 'slidingWindow()',
    id: `sliding-window${subWindows}`,
    subWindows,
    reopenAt,
    settings: () => ({ reopenAt }),
    fields: LocalSlidingWindow.fieldsFor(subWindows),
    local: (site, { localTime }) => new LocalSlidingWindow(site, localTime, subWindows),
    background: BACKGROUND(shape),
    step: slidingWindowStep(subWindows),
  } satisfies SlidingWindow)
}
