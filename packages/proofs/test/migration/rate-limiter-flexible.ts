import { createThrottler, leakyBucket, type PolicyOptions, tokenBucket } from '@weir/core'
import { redisStore } from '@weir/redis'
import {
  BurstyRateLimiter,
  type IRateLimiterOptions,
  RateLimiterMemory,
  RateLimiterQueue,
  RateLimiterRedis,
  type RateLimiterRes,
  RateLimiterUnion,
  RLWrapperBlackAndWhite,
} from 'rate-limiter-flexible'
import { onTestFinished } from 'vitest'
import { client } from './redis.ts'

/** An option or a method of a peer and its replacement. Both must give the same result. */
export interface CallCase {
  readonly options: readonly string[]
  peer(): Promise<unknown>
  weir(): Promise<unknown>
  readonly result: unknown
}

const limiterOf = (options: Partial<IRateLimiterOptions> = {}) => new RateLimiterMemory({ points: 5, duration: 900, ...options })
const throttlerOf = (policy: Partial<PolicyOptions> = {}) => {
  const throttler = createThrottler({ policies: [{ limit: 5, interval: '15m', ...policy } as PolicyOptions] })
  onTestFinished(() => throttler.close())
  return throttler
}

/** Whether a promise of the peer resolves. */
const passes = (promise: Promise<unknown>): Promise<boolean> =>
  promise.then(
    () => true,
    () => false,
  )

/** The results of calls, one after the other. */
async function each<T>(count: number, call: (i: number) => Promise<T> | T): Promise<T[]> {
  const results: T[] = []
  for (let i = 0; i < count; i++) results.push(await call(i))
  return results
}

/** Converts milliseconds to tenths of a minute. */
const about = (ms: number): number => Math.round(ms / 6_000)

export const CASES: readonly CallCase[] = [
  {
    options: ['points', 'duration', 'consume(key, points)', 'remainingPoints'],
    peer: async () => {
      const limiter = limiterOf()
      return each(3, () =>
        limiter.consume('k', 2).then(
          ({ remainingPoints }: RateLimiterRes) => remainingPoints,
          () => 'rejected',
        ),
      )
    },
    weir: async () => {
      const throttler = throttlerOf()
      return each(3, () => {
        const { allowed, remaining } = throttler.check('k', 2)
        return allowed ? remaining : 'rejected'
      })
    },
    result: [3, 1, 'rejected'],
  },
  {
    options: ['blockDuration', 'msBeforeNext'],
    peer: async () => {
      const limiter = limiterOf({ points: 1, blockDuration: 3_600 })
      await limiter.consume('k')
      return limiter.consume('k').catch(({ msBeforeNext }: RateLimiterRes) => about(msBeforeNext))
    },
    weir: async () => {
      const throttler = throttlerOf({ limit: 1, cooldown: '1h' })
      throttler.check('k')
      return about(throttler.check('k').retryAfterMs)
    },
    result: 600,
  },
  {
    options: ['keyPrefix'],
    peer: async () => {
      const limiters = ['a', 'b'].map((keyPrefix) => limiterOf({ keyPrefix, points: 1 }))
      return each(2, (i) => passes((limiters[i] as RateLimiterMemory).consume('k')))
    },
    weir: async () => {
      const throttlers = ['a', 'b'].map((name) => throttlerOf({ name, limit: 1 }))
      return throttlers.map((one) => one.check('k').allowed)
    },
    result: [true, true],
  },
  {
    options: ['insuranceLimiter'],
    peer: async () => {
      const storeClient = { status: 'end', defineCommand() {}, rlflxIncr: () => Promise.reject(new Error('away')), options: {} }
      const limiter = new RateLimiterRedis({ storeClient, points: 2, duration: 900, insuranceLimiter: limiterOf({ points: 2 }) })
      return each(3, () => passes(limiter.consume('k')))
    },
    weir: async () => {
      const store = redisStore('redis://127.0.0.1:1', { namespace: 'insured' })
      const throttler = createThrottler({ policies: [{ limit: 2, interval: '15m' }], store })
      onTestFinished(() => throttler.close())
      return each(3, () => throttler.check('k').allowed)
    },
    result: [true, true, false],
  },
  {
    options: ['execEvenly'],
    peer: async () => {
      const limiter = limiterOf({ points: 4, duration: 1, execEvenly: true })
      const began = performance.now()
      await Promise.all([1, 2, 3].map(() => limiter.consume('k')))
      return performance.now() - began > 300
    },
    weir: async () => {
      const throttler = throttlerOf({ limit: 4, interval: '1s', algorithm: leakyBucket() })
      const began = performance.now()
      await Promise.all([1, 2, 3].map(() => throttler.acquire('k')))
      return performance.now() - began > 300
    },
    result: true,
  },
  {
    options: ['penalty(key, points)', 'get(key)', 'consumedPoints'],
    peer: async () => {
      const limiter = limiterOf()
      await limiter.consume('k')
      await limiter.penalty('k', 2)
      return (await limiter.get('k'))?.consumedPoints
    },
    weir: async () => {
      const throttler = throttlerOf()
      throttler.charge(throttler.check('k'), 2)
      return (await throttler.usage('k'))[0]?.used
    },
    result: 3,
  },
  {
    options: ['reward(key, points)'],
    peer: async () => {
      const limiter = limiterOf()
      await limiter.consume('k', 3)
      await limiter.reward('k', 2)
      return (await limiter.get('k'))?.remainingPoints
    },
    weir: async () => {
      const throttler = throttlerOf()
      throttler.refund(throttler.check('k', 3), 2)
      return throttler.peek('k').remaining
    },
    result: 4,
  },
  {
    options: ['isFirstInDuration'],
    peer: async () => {
      const limiter = limiterOf()
      return each(2, async () => (await limiter.consume('k')).isFirstInDuration)
    },
    weir: async () => {
      const throttler = throttlerOf()
      return each(2, () => {
        const { limit, remaining, cost } = throttler.check('k')
        return remaining === limit - cost
      })
    },
    result: [true, false],
  },
  {
    options: ['block(key, seconds)'],
    peer: async () => {
      const limiter = limiterOf()
      await limiter.block('k', 60)
      return [await passes(limiter.consume('k')), about((await limiter.get('k'))?.msBeforeNext ?? 0)]
    },
    weir: async () => {
      const throttler = throttlerOf()
      throttler.block('k', '1m')
      const { allowed, retryAfterMs } = throttler.check('k')
      return [allowed, about(retryAfterMs)]
    },
    result: [false, 10],
  },
  {
    options: ['delete(key)'],
    peer: async () => {
      const limiter = limiterOf({ points: 1 })
      await limiter.consume('k')
      await limiter.delete('k')
      return passes(limiter.consume('k'))
    },
    weir: async () => {
      const throttler = throttlerOf({ limit: 1 })
      throttler.check('k')
      throttler.reset('k')
      return throttler.check('k').allowed
    },
    result: true,
  },
  {
    options: ['set(key, points, seconds)'],
    peer: async () => {
      const limiter = limiterOf()
      await limiter.set('k', 4, 900)
      return (await limiter.consume('k')).remainingPoints
    },
    weir: async () => {
      const throttler = throttlerOf()
      throttler.reset('k')
      throttler.check('k', 4)
      return throttler.check('k').remaining
    },
    result: 0,
  },
  {
    options: ['limiter', 'whiteList', 'blackList', 'isWhiteListed', 'isBlackListed'],
    peer: async () => {
      const limiter = new RLWrapperBlackAndWhite({ limiter: limiterOf({ points: 1 }), whiteList: ['root'], blackList: ['eve'] })
      return each(4, (i) => passes(limiter.consume(['root', 'root', 'eve', 'ann'][i] as string)))
    },
    weir: async () => {
      const throttler = throttlerOf({ limit: 1 })
      throttler.block('eve', '1000 years')
      return each(4, (i) => {
        const key = ['root', 'root', 'eve', 'ann'][i] as string
        return key === 'root' || throttler.check(key).allowed
      })
    },
    result: [true, true, false, true],
  },
  {
    options: ['storeClient', 'RateLimiterRedis'],
    // Two limiters with one server.
    peer: async () => {
      const limiters = [0, 1].map(() => new RateLimiterRedis({ storeClient: client(), keyPrefix: 'peer', points: 3, duration: 900 }))
      return each(4, (i) => passes((limiters[i % 2] as RateLimiterRedis).consume('k')))
    },
    weir: async () => {
      const policies = [{ limit: 3, interval: '15m', coordination: 'central', storeTimeout: '10s' }] as const
      const throttlers = [0, 1].map(() => createThrottler({ policies, store: redisStore(client(), { namespace: 'flexible' }) }))
      onTestFinished(() => Promise.all(throttlers.map((one) => one.close())).then(() => {}))
      return each(4, async (i) => (await (throttlers[i % 2] as (typeof throttlers)[0]).checkAsync('k')).allowed)
    },
    result: [true, true, true, false],
  },
  {
    options: ['block(key, 0)'],
    peer: async () => {
      const limiter = limiterOf()
      await limiter.block('k', 0)
      return passes(limiter.consume('k'))
    },
    weir: async () => {
      const throttler = throttlerOf()
      throttler.block('k', '1000 years')
      return throttler.check('k').allowed
    },
    result: false,
  },
  {
    options: ['RateLimiterUnion'],
    peer: async () => {
      const limiter = new RateLimiterUnion(limiterOf({ keyPrefix: 'a', points: 2 }), limiterOf({ keyPrefix: 'b', points: 3 }))
      return each(3, () => passes(limiter.consume('k')))
    },
    weir: async () => {
      const policies = [
        { name: 'a', limit: 2, interval: '15m' },
        { name: 'b', limit: 3, interval: '15m' },
      ] as const
      const throttler = createThrottler({ policies })
      return each(3, () => throttler.check('k').allowed)
    },
    result: [true, true, false],
  },
  {
    options: ['BurstyRateLimiter'],
    peer: async () => {
      const burst = limiterOf({ keyPrefix: 'burst', points: 2 })
      const limiter = new BurstyRateLimiter(limiterOf({ points: 1 }), burst)
      return each(4, () => passes(limiter.consume('k')))
    },
    weir: async () => {
      const throttler = throttlerOf({ limit: 1, algorithm: tokenBucket({ burst: 3 }) })
      return each(4, () => throttler.check('k').allowed)
    },
    result: [true, true, true, false],
  },
  {
    options: ['RateLimiterQueue', 'maxQueueSize'],
    peer: async () => {
      const queue = new RateLimiterQueue(limiterOf({ points: 1, duration: 1 }), { maxQueueSize: 1 })
      return (await Promise.all([1, 2, 3].map(() => passes(queue.removeTokens(1))))).filter(Boolean).length
    },
    weir: async () => {
      const policies = [{ limit: 1, interval: '1s' }] as const
      const throttler = createThrottler({ policies, queue: { maxWaitingPerKey: 1 } })
      onTestFinished(() => throttler.close())
      return (await Promise.all([1, 2, 3].map(() => passes(throttler.acquire('k'))))).filter(Boolean).length
    },
    result: 2,
  },
]
