import type { SharedMeters } from '../shared/site.ts'
import { BackgroundFixedWindow } from './background.ts'
import { PublishedFixedWindow } from './spans.ts'

/** The meters of `fixedWindow()` whose counts travel: brought by what exchanges them. */
export const SHARED_FIXED_WINDOW: SharedMeters = {
  background: (site, exchange) => new BackgroundFixedWindow(site, exchange),
  spans: (site, exchange) => new PublishedFixedWindow(site, exchange),
}
