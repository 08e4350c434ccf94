import { type Duration, parseDuration } from '../options/duration.ts'
import { pauseOf } from '../queue/answer-pause.ts'
import type { ScheduleOptions } from '../queue/options.ts'
import { invalidOption } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import { adapterOf } from './adapter-side.ts'
import type { Throttler } from './throttler.ts'

/** Options of `limitedFetch`: those of `acquire`, and these. */
export interface LimitedFetchOptions extends Omit<ScheduleOptions, 'signal'> {
  /**
   * Chooses the key that a request is counted by: a string, or a function of the URL.
   *
   * @default the host and port of the URL
   * @example
   * limitedFetch(throttler, { key: (url) => url.hostname })
   */
  readonly key?: string | ((url: URL) => string)
  /**
   * Replaces the function that sends requests. It is called with the `this` of the returned function.
   *
   * @default the global `fetch` at the time of each call
   */
  readonly fetch?: typeof fetch
  /**
   * Limits how long a reply of the other side can pause all processes. A duration such as `'1h'`, or milliseconds, at least 0. Longer
   * pauses are cut to it.
   *
   * @default '15m'
   */
  readonly longestPause?: Duration
}

const OPTIONS: readonly string[] = [
  'key',
  'fetch',
  'longestPause',
  'cost',
  'limit',
  'timeout',
  'priority',
] satisfies (keyof LimitedFetchOptions)[]

/**
 * A `fetch` that waits for its turn, see `acquire`, and follows the other side's limits. If an answer shows that no request is left, the
 * key is blocked in all processes until requests are left again: a 429, 403 or 503 with `Retry-After`, `RateLimit` fields, or
 * `X-RateLimit-Remaining: 0` with a reset. A 429 without a time blocks it for a second. Dates are relative to the other side's clock (the
 * answer's `Date`). The answer itself is returned unchanged, and no request is repeated.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`. Each call rejects as `acquire` or `fetch` do
 *
 * @example
 * const get = limitedFetch(throttler, { timeout: '10s' })
 * const response = await get('https://api.example.com/users')
 */
export function limitedFetch(throttler: Throttler<string, never>, options: LimitedFetchOptions = {}): typeof fetch {
  const { clock } = adapterOf(throttler)
  checkOptions('limitedFetch', options, OPTIONS, 'options such as { timeout: "5s" }')
  const { key, fetch: request, longestPause = '15m', ...acquire } = options
  if (key !== undefined && typeof key !== 'string' && typeof key !== 'function')
    throw invalidOption('key', key, 'a string, or a function of the URL')
  if (request !== undefined && typeof request !== 'function') throw invalidOption('fetch', request, 'a function such as fetch')
  const longest = parseDuration(longestPause, 'longestPause', 0)
  return async function (this: unknown, input, init) {
    // Packages such as undici have a Request of their own.
    const asked = typeof input === 'object' && 'url' in input ? input : undefined
    const url = new URL(asked?.url ?? (input as string | URL))
    const counted = typeof key === 'function' ? key(url) : (key ?? url.host)
    // As in `fetch`: null removes the request's own signal.
    const signal = init?.signal === undefined ? asked?.signal : init.signal
    const decision = await throttler.acquire(counted, { ...acquire, ...(signal && { signal }) })
    let response: Response
    try {
      response = await (request === undefined ? globalThis.fetch(input, init) : request.call(this, input, init))
    } finally {
      throttler.release(decision)
    }
    // Tests often replace answers by objects without headers.
    if (typeof response?.headers?.get !== 'function') return response
    const pause = Math.min(longest, pauseOf(response.status, response.headers, clock.now()))
    try {
      // A new block would replace an existing one, which may last longer.
      if (pause > 0 && pause > throttler.peek(counted, 0).retryAfterMs) throttler.block(counted, Math.ceil(pause))
    } catch (error) {
      // An answer that has arrived is returned even if the throttler was closed meanwhile.
      if ((error as { code?: unknown }).code !== 'WEIR_CLOSED') throw error
    }
    return response
  }
}
