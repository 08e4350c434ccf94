import { type Algorithm, type Coordination, createThrottler, leakyBucket } from '@weir/core'
import { redisStore } from '@weir/redis'
import Bottleneck from 'bottleneck'
import type { Redis } from 'ioredis'
import { RateLimiter } from 'limiter'
import pThrottle from 'p-throttle'
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible'

/** Waits for its turn, then resolves. */
export type Waits = () => Promise<unknown>

/** A bound that no run reaches. */
const PLENTY = 1_000_000

/** Queues that allow `limit` requests each `interval` milliseconds, in one process. */
export const ALONE = {
  weir: (limit, interval) => {
    const queue = { maxWaiting: PLENTY, maxWaitingPerKey: PLENTY, maxWait: '1h' } as const
    const throttler = createThrottler({ policies: [{ limit, interval, coordination: 'local' }], queue })
    return () => throttler.acquire('all')
  },
  'p-throttle': (limit, interval) => pThrottle({ limit, interval })(async () => {}),
  limiter: (limit, interval) => {
    const limiter = new RateLimiter({ tokensPerInterval: limit, interval })
    return () => limiter.removeTokens(1)
  },
  'rate-limiter-flexible': (limit, interval) => {
    const queue = new RateLimiterQueue(new RateLimiterMemory({ points: limit, duration: interval / 1_000 }))
    return () => queue.removeTokens(1)
  },
  bottleneck: (limit, interval) => {
    const limiter = new Bottleneck({ reservoir: limit, reservoirRefreshAmount: limit, reservoirRefreshInterval: interval })
    return () => limiter.schedule(async () => {})
  },
} satisfies Record<string, (limit: number, interval: number) => Waits>
export type AloneName = keyof typeof ALONE

/** Queues that allow `limit` requests a second, over all processes. */
export const TOGETHER = {
  "weir, 'leased'": weir('leased'),
  "weir, 'central'": weir('central'),
  "weir, 'background'": weir('background'),
  "weir, 'background', leakyBucket()": weir('background', leakyBucket()),
  "weir, 'central', leakyBucket()": weir('central', leakyBucket()),
  bottleneck: (redis, limit) => {
    const connection = new Bottleneck.IORedisConnection({ client: redis })
    // A late process is not registered yet. The library reports an error and continues.
    connection.on('error', () => {})
    const limiter = new Bottleneck({ id: 'api', minTime: 1_000 / limit, datastore: 'ioredis', connection })
    limiter.on('error', () => {})
    return () => limiter.schedule(async () => {})
  },
  'rate-limiter-flexible': (redis, limit) => {
    const queue = new RateLimiterQueue(new RateLimiterRedis({ storeClient: redis, points: limit, duration: 1 }))
    return () => queue.removeTokens(1, 'api')
  },
} satisfies Record<string, (redis: Redis, limit: number) => Waits>
export type TogetherName = keyof typeof TOGETHER

function weir(coordination: Coordination, algorithm?: Algorithm): (redis: Redis, limit: number) => Waits {
  return (redis, limit) => {
    // The fail mode prevents overshoot, even while a starting process can't keep up with the others.
    const failMode = coordination === 'background' ? 'share' : 'closed'
    const policy = { limit, interval: '1s', coordination, failMode, ...(algorithm && { algorithm }) } as const
    const throttler = createThrottler({ store: redisStore(redis), policies: [policy] }).start()
    return () => throttler.acquire('api', { timeout: '30s' })
  }
}
