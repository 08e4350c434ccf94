import { createHash } from 'node:crypto'
import RedisWindows from '@fastify/rate-limit/store/RedisStore.js'
import { Ratelimit } from '@upstash/ratelimit'
import { type Algorithm, createThrottler, fixedWindow, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { redisStore } from '@weir/redis'
import type { Redis } from 'ioredis'
import RedisLog from 'koa-ratelimit/limiter/redis.js'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'

/** Units per interval. No key gets as many in a run, so that each decision counts. */
export const LIMIT = 100
/** The interval, in milliseconds. */
const INTERVAL = 600_000

/** Decides a request of a key. Returns whether it is allowed. */
export type Decides = (key: string) => Promise<boolean>
type Contender = (redis: Redis) => Decides | Promise<Decides>

/** Limiters that decide each request in Redis, by the algorithm of their comparison. */
export const CONTENDERS = {
  'one script, INCR and PEXPIRE': floor,
  'weir, fixedWindow()': weir(fixedWindow()),
  "weir, fixedWindow({ start: 'first-request' })": weir(fixedWindow({ start: 'first-request' })),
  'rate-limiter-flexible': flexible,
  'rate-limit-redis': express,
  '@fastify/rate-limit': fastify,
  '@upstash/ratelimit, fixedWindow': upstash(Ratelimit.fixedWindow(LIMIT, '600 s')),
  'weir, slidingCounter()': weir(slidingCounter()),
  '@upstash/ratelimit, slidingWindow': upstash(Ratelimit.slidingWindow(LIMIT, '600 s')),
  'weir, slidingLog()': weir(slidingLog()),
  'koa-ratelimit': koa,
  'weir, tokenBucket()': weir(tokenBucket()),
  '@upstash/ratelimit, tokenBucket': upstash(Ratelimit.tokenBucket(LIMIT, '600 s', LIMIT)),
  'weir, slidingWindow()': weir(slidingWindow()),
} satisfies Record<string, Contender>
export type ContenderName = keyof typeof CONTENDERS

/** The smallest script that counts a request in a window and lets the key expire. */
function floor(redis: Redis): Decides {
  const lua = `local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n`
  redis.defineCommand('floor', { numberOfKeys: 1, lua })
  const { floor } = redis as Redis & { floor(key: string, interval: number): Promise<number> }
  return async (key) => (await floor.call(redis, key, INTERVAL)) <= LIMIT
}

function weir(algorithm: Algorithm): Contender {
  return async (redis) => {
    const policy = { limit: LIMIT, interval: INTERVAL, algorithm, coordination: 'central', storeTimeout: '1m' } as const
    const throttler = createThrottler({ policies: [policy], store: redisStore(redis) }).start()
    for (let i = 0; i < 500 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 10))
    if (throttler.state !== 'synced') throw new Error('Redis does not answer')
    return async (key) => (await throttler.checkAsync(key)).allowed
  }
}

function flexible(redis: Redis): Decides {
  const limiter = new RateLimiterRedis({ storeClient: redis, points: LIMIT, duration: INTERVAL / 1000 })
  return async (key) => (await limiter.consume(key)).remainingPoints >= 0
}

async function express(redis: Redis): Promise<Decides> {
  const store = new RedisStore({ sendCommand: (name: string, ...args: string[]) => redis.call(name, ...args) as Promise<number> })
  // The store uses only this option.
  await store.init({ windowMs: INTERVAL } as never)
  return async (key) => (await store.increment(key)).totalHits <= LIMIT
}

function fastify(redis: Redis): Decides {
  const store = new RedisWindows(false, false, redis)
  return (key) =>
    new Promise((resolve, reject) => {
      store.incr(key, (error, result) => (error ? reject(error) : resolve(result.current <= LIMIT)), INTERVAL, LIMIT)
    })
}

function koa(redis: Redis): Decides {
  const limiter = new RedisLog({ db: redis, max: LIMIT, duration: INTERVAL })
  return async (key) => (await limiter.get({ id: key })).remaining > 0
}

/**
 * Runs a peer's scripts over ioredis. Its own client can send HTTP only to its own service, and its scripts carry a flag of that
 * service, which is removed here.
 */
function upstash(limiter: ReturnType<typeof Ratelimit.fixedWindow>): Contender {
  return (redis) => {
    const loaded = new Map<string, string>()
    const call = (sha: string, keys: string[], args: unknown[]) => redis.evalsha(sha, keys.length, ...keys, ...args.map(String))
    const client = {
      get: (key: string) => redis.get(key),
      set: (key: string, value: string) => redis.set(key, value),
      async evalsha(hash: string, keys: string[], args: unknown[]) {
        const sha = loaded.get(hash)
        if (sha === undefined) throw new Error(`NOSCRIPT ${(last = hash)}`)
        return call(sha, keys, args)
      },
      async eval(script: string, keys: string[], args: unknown[]) {
        const text = script.replace(/^#!lua.*/, '')
        const sha = createHash('sha1').update(text).digest('hex')
        await redis.script('LOAD', text)
        loaded.set(last, sha)
        return call(sha, keys, args)
      },
    }
    let last = ''
    const made = new Ratelimit({ redis: client as never, limiter, ephemeralCache: false, timeout: 0, enableTelemetry: false })
    return async (key) => (await made.limit(key)).success
  }
}
