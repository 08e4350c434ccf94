import type { MakeShared } from '../site.ts'
import { WindowMeter } from '../window-meter.ts'
import { PublishedSlidingCounter } from './spans.ts'

/** Makes the meters of `slidingCounter()` whose counts are synced. */
export function publishedSlidingCounter(): MakeShared {
  return (site, exchange) => new WindowMeter(site, exchange, (meter) => new PublishedSlidingCounter(meter), true)
}
