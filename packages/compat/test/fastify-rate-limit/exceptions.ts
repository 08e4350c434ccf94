/** Published cases of @fastify/rate-limit 11 that `fastifyRateLimitStore` can't pass: "file: title". A title that occurs twice is listed twice. */
export const EXCEPTIONS: readonly { readonly reason: string; readonly cases: readonly string[] }[] = [
  {
    reason: "Windows begin at whole multiples of timeWindow, for all keys at the same time, and not with a key's first request.",
    cases: [
      'create-rate-limit: With global rate limit options',
      'create-rate-limit: With custom rate limit options',
      'issue-215: issue #215 - when using local store, 2nd user should not be rate limited when the time window is passed for the 1st user',
    ],
  },
  {
    reason: 'continueExceeding is not supported, and throws at registration. Use cooldown of @weir/fastify.',
    cases: [
      'create-rate-limit: With { increment: false } and continueExceeding the peek mirrors the active window',
      'global-rate-limit: When continue exceeding is on (Local)',
      'issue-207: issue #207 - when continueExceeding is true and the store is local then it should reset the rate-limit',
      "issue-284: issue #284 - don't set the reply code automatically",
      'redis-rate-limit: Redis with continueExceeding should not always return the timeWindow as ttl',
      'redis-rate-limit: When continue exceeding is off under route (Redis)',
      'redis-rate-limit: When continue exceeding is on (Redis)',
      'redis-rate-limit: When continue exceeding is on (Redis)',
      'route-rate-limit: When continue exceeding is on (Local)',
    ],
  },
  {
    reason: 'exponentialBackoff is not supported, and throws at registration. Use cooldown of @weir/fastify.',
    cases: [
      'create-rate-limit: With { increment: false } and exponentialBackoff the peek reports the base window without escalating it',
      'exponential-backoff: Exponential Backoff',
      'exponential-backoff: Global Exponential Backoff',
      'exponential-backoff: MAx safe Exponential Backoff',
      'redis-rate-limit: Route-specific exponential backoff with redis store',
      'redis-rate-limit: With redis store and exponential backoff',
    ],
  },
  {
    reason: 'An outage of Redis is no error. Requests fail only after the throttler is closed.',
    cases: [
      'redis-rate-limit: Skip on redis error',
      'redis-rate-limit: Skip on redis error',
      'redis-rate-limit: Throw on redis error',
      'redis-rate-limit: Throw on redis error',
      'redis-rate-limit: With { increment: false } it throws on redis error',
    ],
  },
]
