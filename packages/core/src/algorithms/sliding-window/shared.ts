import type { MakeShared } from '../shared/site.ts'
import { BackgroundSlidingWindow } from './background.ts'
import { SlidingWindowMeter } from './meter.ts'
import type { WindowShape } from './wait.ts'

/** Makes the meters of `slidingWindow()` whose counts travel. */
export function backgroundSlidingWindow(shape: WindowShape): MakeShared {
  return (site, exchange) => new SlidingWindowMeter(site, exchange, shape, (meter) => new BackgroundSlidingWindow(meter))
}
