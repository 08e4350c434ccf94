import type { MakeShared } from '../shared/site.ts'
import { BackgroundSlidingWindow } from './background.ts'
import { SlidingWindowMeter } from './meter.ts'
import { partsOf } from './parts.ts'
import type { WindowShape } from './wait.ts'

/** Makes the meters of `slidingWindow()` whose counts travel. */
export function backgroundSlidingWindow(shape: Omit<WindowShape, 'parts' | 'group'>): MakeShared {
  return (site, exchange) =>
    new SlidingWindowMeter(
      site,
      exchange,
      { ...shape, ...partsOf(site.policy, shape.subWindows) },
      (meter) => new BackgroundSlidingWindow(meter),
    )
}
