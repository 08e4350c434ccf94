import type { Snapshot, Throttler } from '@weir/core'

/** What is needed of a throttler: one of any policies and requests will do. */
export type MetricsSource = Pick<Throttler, 'on'> & {
  snapshot(options?: { readonly top?: number; readonly blocked?: number }): Snapshot
}

/** A snapshot without its lists of keys, which no metric holds. */
export function readSource(source: MetricsSource): Snapshot {
  return source.snapshot({ top: 0, blocked: 0 })
}
