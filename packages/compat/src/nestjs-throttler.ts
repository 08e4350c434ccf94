import type { ThrottlerStorage } from '@nestjs/throttler'
import type { Store, Throttler } from '@weir/core'
import { hitsOf, intervalOf, LONGEST, secondsToWait, Windows, wholeLimit } from './windows.ts'

/** A storage of `ThrottlerModule`. */
export interface NestThrottlerStorage extends ThrottlerStorage {
  /** The throttler of all limits of the store's value, for metrics, the dashboard, `block` and so on. A new one after it was closed. */
  readonly throttler: Throttler
  /** Sends the last counts and closes the connection. Nest calls it. */
  onApplicationShutdown(): Promise<void>
}

/**
 * A storage for `ThrottlerModule` of @nestjs/throttler 6. Each process counts in memory, and counts are synced in the background.
 *
 * Windows begin at whole multiples of `ttl`. Requests above the limit are not counted.
 *
 * @param store a value of `redisStore(…)` or another store of Weir
 * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_INVALID_OPTION`
 *
 * @example
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage: nestThrottlerStorage(redisStore('redis://localhost:6379')) })
 */
export function nestThrottlerStorage(store: Store): NestThrottlerStorage {
  let windows = Windows.at(store)
  return {
    get throttler() {
      return windows.throttler
    },
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      // A storage may outlive an application, which closes the throttler.
      if (windows.throttler.state === 'closed') windows = Windows.at(store)
      const { throttler } = windows
      const most = wholeLimit(limit)
      const outlasts = blockDuration >= ttl
      const window = windows.ofRequest(throttlerName, most, intervalOf('ttl', ttl), outlasts ? Math.min(blockDuration, LONGEST) : 0)
      const decision = window.hit(key, most)
      const { allowed, reason, resetAfterMs } = decision
      // After such a block, the key starts with no hits, although the window still runs.
      const startsBlock = reason === 'limit' && blockDuration > 0 && !outlasts
      if (startsBlock) {
        const options = { policy: window.policy.name }
        throttler.reset(`${key}`, options)
        throttler.block(`${key}`, Math.ceil(blockDuration), options)
      }
      return {
        totalHits: hitsOf(decision, most),
        timeToExpire: Math.ceil(resetAfterMs / 1000),
        isBlocked: !allowed,
        timeToBlockExpire: startsBlock ? Math.ceil(blockDuration / 1000) : secondsToWait(decision),
      }
    },
    onApplicationShutdown: () => windows.throttler.close(),
  }
}
