import type { SlidingShape } from '../../algorithms/shape.ts'
import type { MakeShared } from '../site.ts'
import { BackgroundSlidingWindow } from './background.ts'
import { SlidingWindowMeter } from './meter.ts'
import { partsOf } from './parts.ts'

/** Makes the meters of `slidingWindow()` whose counts are synced. */
export function backgroundSlidingWindow({ subWindows, reopenAt }: SlidingShape): MakeShared {
  return (site, exchange) =>
    new SlidingWindowMeter(
      site,
      exchange,
      { subWindows, reopenAt, ...partsOf(site.policy, subWindows) },
      (meter) => new BackgroundSlidingWindow(meter),
    )
}
