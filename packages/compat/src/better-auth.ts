import type { Store, Throttler } from '@weir/core'
import type { BetterAuthOptions } from 'better-auth'
import { intervalOf, secondsToWait, Windows, wholeLimit } from './windows.ts'

type CustomStorage = NonNullable<NonNullable<BetterAuthOptions['rateLimit']>['customStorage']>

/** A `customStorage` of better-auth. */
export interface BetterAuthStorage extends CustomStorage {
  /** The throttler of all limits of the store's value, for metrics, the dashboard, `block` and so on. */
  readonly throttler: Throttler
}

/**
 * A `customStorage` for the rate limit of better-auth 1.7 or later. Each process counts in memory, and counts are synced in the background.
 *
 * Windows begin at whole multiples of `window`.
 *
 * @param store a value of `redisStore(…)` or another store of Weir
 * @throws WeirError `WEIR_INVALID_OPTION`
 *
 * @example
 * betterAuth({ rateLimit: { customStorage: betterAuthStorage(redisStore('redis://localhost:6379')) } })
 */
export function betterAuthStorage(store: Store): BetterAuthStorage {
  const windows = Windows.at(store)
  return {
    throttler: windows.throttler,
    async consume(key, { window, max }) {
      const limit = wholeLimit(max, 'max')
      const decision = windows.ofRequest('better-auth', limit, intervalOf('window', window, 'seconds')).hit(key, limit)
      return { allowed: decision.allowed, retryAfter: decision.allowed ? null : secondsToWait(decision) }
    },
  }
}
