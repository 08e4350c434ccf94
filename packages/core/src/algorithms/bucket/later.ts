import { later } from '../shared/later.ts'
import type { MakeShared, SharedForm } from '../shared/site.ts'
import type { BetweenNodes } from './store-policies.ts'

/** The meters of buckets that all nodes fill. */
export const BACKGROUND_BUCKET: (between: BetweenNodes) => SharedForm = later(async () => {
  const { BackgroundBucket } = await import('./background.ts')
  return (between: BetweenNodes): MakeShared =>
    (site, exchange) =>
      new BackgroundBucket(site, exchange, between)
})
