import { type Algorithm, type Duration, fixedWindow, tokenBucket } from '@weir/core'

/** A rule for which programs can request permits. */
interface PermitPolicy {
  readonly limit: number
  readonly interval: Duration
  readonly algorithm: Algorithm
}

export const POLICIES: Readonly<Record<string, PermitPolicy>> = {
  /** An expensive job, which each customer may run six times an hour. */
  reports: { limit: 6, interval: '1h', algorithm: fixedWindow() },
  /** A foreign API, which allows five calls a second, and ten at once after a pause. */
  geocoder: { limit: 5, interval: '1s', algorithm: tokenBucket({ burst: 10 }) },
}
