import type { Throttler } from '@weir/core'
import { type Snapshot, snapshot } from '@weir/core/inspect'

/** What is needed of a throttler: one of any policies and requests will do. */
export type MetricsSource = Pick<Throttler, 'on' | 'inspected'>

/** A snapshot without its lists of keys, which no metric holds. */
export function readSource(source: MetricsSource): Snapshot {
  return snapshot(source, { top: 0, blocked: 0 })
}
