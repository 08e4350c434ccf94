import { type Algorithm, type Duration, fixedWindow, tokenBucket } from '@weir/core'

/** What programs may ask permits of. */
interface PermitPolicy {
  readonly limit: number
  readonly interval: Duration
  readonly algorithm: Algorithm
}

export const POLICIES: Readonly<Record<string, PermitPolicy>> = {
  /** An expensive job, which each customer may run six times an hour. */
  reports: { limit: 6, interval: '1h', algorithm: fixedWindow() },
  /** An API of somebody else's, which takes five calls a second, and ten at once after a rest. */
  geocoder: { limit: 5, interval: '1s', algorithm: tokenBucket({ burst: 10 }) },
}
