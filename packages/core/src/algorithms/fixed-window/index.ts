import type { Algorithm } from '../algorithm.ts'
import { BackgroundFixedWindow } from './background.ts'
import { LocalFixedWindow } from './local.ts'
import { PublishedFixedWindow } from './spans.ts'

const FIXED_WINDOW: Algorithm = Object.freeze({
  name: 'fixedWindow()',
  id: 'fixed-window',
  fields: 2,
  local: (site, { localTime }) => new LocalFixedWindow(site, localTime),
  background: (site, exchange) => new BackgroundFixedWindow(site, exchange),
  spans: (site, exchange) => new PublishedFixedWindow(site, exchange),
} satisfies Algorithm)

/**
 * At most the limit in each interval of the Unix epoch: the default. Around an interval's end up to twice the limit may pass
 * within one interval's length.
 */
export function fixedWindow(): Algorithm {
  return FIXED_WINDOW
}
