import type { Store, Throttler } from '@weir/core'
import { intervalOf, secondsToWait, Windows, wholeLimit } from './windows.ts'

/** A `customStorage` of better-auth. Its own type is not used, because CommonJS can't import it. */
export interface BetterAuthStorage {
  /** Counts a request if the limit allows it. Times are seconds. */
  consume(
    key: string,
    rule: { readonly window: number; readonly max: number },
  ): Promise<{ readonly allowed: boolean; readonly retryAfter: number | null }>
  /** The throttler of all limits of the store's value, for metrics, the dashboard, `block` and so on. */
  readonly throttler: Throttler
}

/**
 * A `customStorage` for the rate limit of better-auth 1.7 or later. Each process counts in memory, and counts are synced in the background.
 *
 * Windows begin at whole multiples of `window`.
 *
 * @param store a value of `redisStore(…)` or another store of Weir
 * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_INVALID_OPTION`
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
