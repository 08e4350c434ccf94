import { BackgroundFixedWindow } from '../algorithms/fixed-window/background.ts'
import { later } from '../algorithms/shared/later.ts'
import type { SharedMeters } from '../algorithms/shared/site.ts'
import { WindowMeter } from '../algorithms/shared/window-meter.ts'
import { loadLeases } from './waits.ts'

/** The meters of the default algorithm whose counts travel: the store brings them, as it is in every bundle. */
export const SHARED_FIXED_WINDOW: SharedMeters = {
  background: (site, exchange) => new WindowMeter(site, exchange, (meter) => new BackgroundFixedWindow(meter), false),
  periodic: later(async () => {
    const { PublishedFixedWindow } = await import('../algorithms/fixed-window/spans.ts')
    return () => (site, exchange) => new WindowMeter(site, exchange, (meter) => new PublishedFixedWindow(meter), true)
  })(),
  leased: later(loadLeases)(),
}
