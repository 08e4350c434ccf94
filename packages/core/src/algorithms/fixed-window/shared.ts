import type { SharedMeters } from '../shared/site.ts'
import { WindowMeter } from '../shared/window-meter.ts'
import { BackgroundFixedWindow } from './background.ts'
import { LeaseMeter } from './leases/meter.ts'
import { PublishedFixedWindow } from './spans.ts'

/** The meters of `fixedWindow()` whose counts travel: brought by what exchanges them. */
export const SHARED_FIXED_WINDOW: SharedMeters = {
  background: (site, exchange) => new WindowMeter(site, exchange, (meter) => new BackgroundFixedWindow(meter), false),
  spans: (site, exchange) => new WindowMeter(site, exchange, (meter) => new PublishedFixedWindow(meter), true),
  leases: (site, exchange) => new LeaseMeter(site, exchange),
}
