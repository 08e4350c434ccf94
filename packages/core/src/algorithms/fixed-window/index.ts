import type { Algorithm } from '../algorithm.ts'
import { LocalFixedWindow } from './local.ts'

const FIXED_WINDOW: Algorithm = Object.freeze({
  name: 'fixedWindow()',
  id: 'fixed-window',
  fields: 2,
  local: (site, { localTime }) => new LocalFixedWindow(site, localTime),
  // The default stands in every bundle. Its shared meters come with the store, so that applications without one don't carry
  // them. Other algorithms bring theirs: who does not import them has none of it.
  background: (site, exchange) => exchange.fixedWindow.background(site, exchange),
  spans: (site, exchange) => exchange.fixedWindow.spans(site, exchange),
} satisfies Algorithm)

/**
 * At most the limit in each interval of the Unix epoch: the default. Around an interval's end up to twice the limit may pass
 * within one interval's length.
 */
export function fixedWindow(): Algorithm {
  return FIXED_WINDOW
}
