import { memoryStore, type Store, type Throttler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { betterAuthStorage } from '../src/better-auth.ts'
import { fastifyRateLimitStore } from '../src/fastify-rate-limit.ts'
import { nestThrottlerStorage } from '../src/nestjs-throttler.ts'

/** A store whose limits come with each request. */
interface Counted {
  readonly throttler: Throttler
  /** Counts a request, and resolves with whether it is allowed. `window` is in milliseconds. */
  hit(key: string, max: number, window: number): Promise<boolean>
}

const STORES: readonly { readonly name: string; readonly options: { max: string; window: string }; make(store: Store): Counted }[] = [
  {
    name: 'nestThrottlerStorage',
    options: { max: 'limit', window: 'ttl' },
    make: (store) => {
      const storage = nestThrottlerStorage(store)
      const hit: Counted['hit'] = async (key, max, window) => !(await storage.increment(key, window, max, 0, 'default')).isBlocked
      return { throttler: storage.throttler, hit }
    },
  },
  {
    name: 'fastifyRateLimitStore',
    options: { max: 'max', window: 'timeWindow' },
    make: (store) => {
      const Store = fastifyRateLimitStore(store)
      const made = new Store({})
      const hit: Counted['hit'] = (key, max, window) =>
        new Promise((resolve, reject) => {
          made.incr(key, (error, result) => (error === null ? resolve((result?.current ?? 0) <= max) : reject(error)), window, max)
        })
      return { throttler: Store.throttler, hit }
    },
  },
  {
    name: 'betterAuthStorage',
    options: { max: 'max', window: 'window' },
    make: (store) => {
      const storage = betterAuthStorage(store)
      const hit: Counted['hit'] = async (key, max, window) => (await storage.consume(key, { window: window / 1000, max })).allowed
      return { throttler: storage.throttler, hit }
    },
  },
]

const HOUR = 3_600_000

let redis: RedisServer
beforeAll(async () => {
  redis = await RedisServer.start()
})
afterAll(() => redis.stop())

describe.each(STORES)('$name', ({ name, options, make }) => {
  function opened(store: Store = memoryStore()): Counted {
    const made = make(store)
    onTestFinished(() => made.throttler.close())
    return made
  }

  test('two processes share a limit at Redis', async () => {
    const processes = [1, 2].map(() => opened(redisStore(redis.url, { namespace: `${name}-shared` })))
    let allowed = 0
    let hits: boolean[]
    do {
      hits = await Promise.all(processes.map(({ hit }) => hit('key', 10, HOUR)))
      allowed += hits.filter(Boolean).length
      // All counts are at Redis before the next requests, so that the speed of the machine does not matter.
      for (const { throttler } of processes) await expect.poll(() => throttler.usage('key')).toMatchObject([{ used: allowed }])
    } while (hits.includes(true))
    expect(allowed).toBeGreaterThanOrEqual(10)
    // Each process may allow one more request before it receives the other's last count.
    expect(allowed).toBeLessThanOrEqual(12)
  })

  test.each(['memory', 'redis'])('keys of 10,000 characters have counts of their own (%s)', async (at) => {
    const { hit, throttler } = opened(at === 'redis' ? redisStore(redis.url, { namespace: `${name}-long` }) : memoryStore())
    const keys = ['a', 'b'].map((end) => 'k'.repeat(9_999) + end)
    for (const key of keys) expect([await hit(key, 1, HOUR), await hit(key, 1, HOUR)]).toEqual([true, false])
    for (const key of keys) await expect.poll(() => throttler.usage(key)).toMatchObject([{ used: 1 }])
  })

  test('different limits and windows of a key have counts of their own', async () => {
    const { hit } = opened()
    const limits = [
      [1, HOUR],
      [2, HOUR],
      [1, 2 * HOUR],
    ] as const
    for (const [max, window] of limits) {
      for (let request = 0; request <= max; request++) expect(await hit('key', max, window)).toBe(request < max)
    }
  })

  test('invalid limits and windows are errors that name the option', async () => {
    const { hit, throttler } = opened()
    await expect(hit('key', Number.NaN, HOUR)).rejects.toThrow(`Option "${options.max}" is NaN. Use a number.`)
    for (const window of [0, -1, 9, Number.NaN, Number.POSITIVE_INFINITY]) {
      const expected = { code: 'WEIR_INVALID_OPTION', message: expect.stringContaining(`Option "${options.window}" is `) }
      await expect(hit('key', 1, window)).rejects.toMatchObject(expected)
    }
    expect(throttler.policies).toEqual([])
  })

  test('limits of 0, below 0 and infinity', async () => {
    const { hit } = opened()
    for (const max of [0, -1]) expect(await hit('key', max, HOUR)).toBe(false)
    for (let request = 0; request < 20; request++) expect(await hit('key', Number.POSITIVE_INFINITY, HOUR)).toBe(true)
  })

  test('after its throttler is closed, a new one of the same store counts again', async () => {
    const store = memoryStore()
    const { hit, throttler } = opened(store)
    expect(await hit('key', 1, HOUR)).toBe(true)
    await throttler.close()
    // Nest closes it with one of several applications.
    if (name === 'nestThrottlerStorage') expect(await hit('other key', 1, HOUR)).toBe(true)
    else await expect(hit('key', 1, HOUR)).rejects.toMatchObject({ code: 'WEIR_CLOSED', message: expect.stringContaining('after close()') })
    expect(await opened(store).hit('other', 1, HOUR)).toBe(true)
  })

  test('with a new window for each request, memory stays bounded, and one warning is given', async () => {
    const warnings: string[] = []
    const listen = (warning: Error) => warnings.push(warning.message)
    process.on('warning', listen)
    onTestFinished(() => {
      process.off('warning', listen)
    })
    const { hit, throttler } = opened()
    for (let more = 0; more < 300; more++) {
      // Limits still apply to windows that share a policy.
      for (const allowed of [true, false]) expect(await hit(`key ${more}`, 1, HOUR + more * 1000)).toBe(allowed)
    }
    expect(throttler.policies.length).toBeLessThanOrEqual(105)
    await expect.poll(() => warnings).toEqual([expect.stringContaining('Requests have more than 100 different limits or windows.')])
  })
})
