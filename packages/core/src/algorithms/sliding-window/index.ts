import { invalidOption } from '../../report/errors.ts'
import { checkAlgorithmOptions } from '../../report/names.ts'
import type { Algorithm } from '../algorithm.ts'
import { LocalSlidingWindow } from './local.ts'
import { slidingWindowStep } from './step.ts'

/** Options of `slidingWindow`. */
export interface SlidingWindowOptions {
  /**
   * Divides the interval into 6 to 120 parts of at least 5 ms, whose counts expire one by one.
   *
   * More parts free units sooner and use more memory.
   *
   * @default 30
   */
  readonly subWindows?: number
  /**
   * Opens a full key once this fraction of the limit is free: more than 0, at most 1. A smaller one allows more under constant overload,
   * and costs more syncs. Ignored unless `'background'`.
   *
   * With `'local'` and `'central'` a key opens as soon as a request fits.
   *
   * @default 0.1
   */
  readonly reopenAt?: number
}

/** The algorithm that `slidingWindow` makes. */
export interface SlidingWindow extends Algorithm, Readonly<Required<SlidingWindowOptions>> {
  readonly subWindows: number
}

/**
 * Allows at most the limit in any stretch of the interval's length.
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
  return Object.freeze({
    name: 'slidingWindow()',
    id: `sliding-window${subWindows}`,
    subWindows,
    reopenAt,
    settings: () => ({ reopenAt }),
    fields: LocalSlidingWindow.fieldsFor(subWindows),
    local: (site, { localTime }) => new LocalSlidingWindow(site, localTime, subWindows),
    shape: { kind: 'sliding-window', coordinations: ['background'], subWindows, reopenAt },
    step: slidingWindowStep(subWindows),
  } satisfies SlidingWindow)
}
