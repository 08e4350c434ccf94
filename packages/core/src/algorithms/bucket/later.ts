import { later } from '../shared/later.ts'
import type { MakeShared, SharedForm } from '../shared/site.ts'

/** The meters of buckets that all nodes fill, by the most units that a key pays back. */
export const BACKGROUND_BUCKET: (maxDebt: number | undefined) => SharedForm = later(async () => {
  const { BackgroundBucket } = await import('./background.ts')
  return (maxDebt: number | undefined): MakeShared =>
    (site, exchange) =>
      new BackgroundBucket(site, exchange, maxDebt)
})
