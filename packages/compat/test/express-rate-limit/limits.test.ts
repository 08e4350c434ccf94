import { memoryStore } from '@weir/core'
import { type Options, rateLimit } from 'express-rate-limit'
import { describe, expect, test } from 'vitest'
import { type ExpressRateLimitStoreOptions, expressRateLimitStore } from '../../src/express-rate-limit.ts'
import { HOUR, keeping, ME, ownNamespace, ownRedis, serve, statuses, storeOver } from './support.ts'

const redis = ownRedis()

/** A limiter over a memory store, its server and its messages. Options may be of any type, as in JavaScript. */
async function limited(options: object, storeOptions?: ExpressRateLimitStoreOptions) {
  const logger = keeping()
  const store = storeOver(memoryStore(), storeOptions)
  const limiter = rateLimit({ windowMs: HOUR, limit: 2, logger, store, ...(options as Partial<Options>) })
  return { ...(await serve(limiter)), store, limiter, ...logger }
}

describe('the limit', () => {
  test.each([
    ['a function', () => 2],
    ['a function that returns a promise', async () => 2],
  ])('may be %s with { limit }', async (_name, limit) => {
    const server = await limited({ limit }, { limit: 2 })
    expect(await statuses(server, ['/', '/', '/'])).toEqual([200, 200, 429])
    expect(server.lines).toEqual([])
  })

  test('may be a function that returns different limits up to { limit }', async () => {
    const limit: Options['limit'] = (req) => (req.query['plan'] === 'pro' ? 4 : 2)
    const server = await limited({ limit }, { limit: 4 })
    expect(await statuses(server, ['/', '/', '/', '/?plan=pro', '/?plan=pro'])).toEqual([200, 200, 429, 200, 429])
  })

  test.each([
    ['a function', { limit: () => 2 }, /The middleware's limit is a function\. Use expressRateLimitStore\(store, \{ limit \}\)/],
    ['0', { limit: 0, validate: false }, /The middleware's limit is 0\. Use expressRateLimitStore\(store, \{ limit \}\)/],
    ['negative', { limit: -1 }, /"limit" is -1\. Use a number of at least 1/],
    ['NaN', { limit: Number.NaN }, /"limit" is NaN\. Use a number of at least 1/],
    ['a string', { limit: '5' }, /"limit" is "5"\. Use a number of at least 1/],
    ['lower than 1', { limit: 0.5 }, /"limit" is 0\.5\. Use a number of at least 1/],
  ])('%s fails at construction in the log, and for each request', async (_name, options, message) => {
    const server = await limited(options)
    expect(server.lines).toEqual([expect.stringMatching(message)])
    for (const { status, text } of [await server.get(), await server.get()]) {
      expect(status).toBe(500)
      expect(text).toMatch(new RegExp(message.source.replaceAll('"', '&quot;').replaceAll("'", '&#39;')))
    }
  })

  test('that fails allows requests with passOnStoreError, and each is logged', async () => {
    const server = await limited({ limit: () => 2, passOnStoreError: true })
    expect(await statuses(server, ['/', '/', '/'])).toEqual([200, 200, 200])
    expect(server.lines).toHaveLength(4)
  })

  test('may be Infinity', async () => {
    const server = await limited({ limit: Number.POSITIVE_INFINITY })
    expect(await statuses(server, ['/', '/', '/'])).toEqual([200, 200, 200])
    expect((await server.limiter.getKey(ME))?.totalHits).toBe(3)
  })

  test('may have a fraction, which allows no request more', async () => {
    expect(await statuses(await limited({ limit: 2.5 }), ['/', '/', '/'])).toEqual([200, 200, 429])
  })

  test('0 rejects each request with { limit: 1 }', async () => {
    const server = await limited({ limit: 0, validate: { limit: false } }, { limit: 1 })
    expect(await statuses(server, ['/', '/'])).toEqual([429, 429])
  })

  test('must not exceed { limit }, which would never reject', async () => {
    const server = await limited({ limit: 3 }, { limit: 2 })
    expect(server.lines).toEqual([expect.stringMatching(/"limit" is 2\. Use at least 3, the limit of the middleware/)])
    expect((await server.get()).status).toBe(500)
  })

  test('may be lower than { limit }', async () => {
    expect(await statuses(await limited({ limit: 1 }, { limit: 5 }), ['/', '/', '/'])).toEqual([200, 429, 429])
  })
})

describe('windowMs', () => {
  test.each([0, -1, 29, Number.NaN, '60000'])('%s fails at construction in the log, and for each request', async (windowMs) => {
    const server = await limited({ windowMs })
    expect(server.lines).toEqual([expect.stringMatching(/"windowMs" is .*Use a number of milliseconds from 30/)])
    expect((await server.get()).status).toBe(500)
  })

  test.each([Number.POSITIVE_INFINITY, 1e15])('%s is too long', async (windowMs) => {
    const server = await limited({ windowMs })
    expect(server.lines).toEqual([expect.stringMatching(/"windowMs" is .*Use a number of milliseconds from 30/)])
    expect((await server.get()).status).toBe(500)
  })

  test('of several years is longer than timers allow, and counts', async () => {
    const windowMs = 5 * 365 * 24 * HOUR
    const server = await limited({ windowMs })
    expect(await statuses(server, ['/', '/', '/'])).toEqual([200, 200, 429])
    const { resetTime } = (await server.limiter.getKey(ME)) ?? {}
    expect(resetTime?.getTime()).toBeGreaterThan(Date.now())
    expect(resetTime?.getTime()).toBeLessThanOrEqual(Date.now() + windowMs)
  })
})

describe('keys', () => {
  test('of 10,000 characters may differ in the last one only', async () => {
    const store = storeOver(redis.process(ownNamespace()))
    store.init({ windowMs: HOUR, limit: 5 })
    const long = 'x'.repeat(10_000)
    expect([`${long}1`, `${long}1`, `${long}2`].map((key) => store.increment(key).totalHits)).toEqual([1, 2, 1])
    store.decrement(`${long}1`)
    expect(await store.get(`${long}1`)).toMatchObject({ totalHits: 1 })
    store.resetKey(`${long}1`)
    expect(await store.get(`${long}1`)).toBeUndefined()
    expect(await store.get(`${long}2`)).toMatchObject({ totalHits: 1 })
  })

  test.each([undefined, null, 5, {}, '', '\0', '\ud800', 'ключ'])('%j counts as its text', async (key) => {
    const store = storeOver(redis.process(ownNamespace()))
    store.init({ windowMs: HOUR, limit: 5, skipFailedRequests: true })
    const given = key as string
    store.increment(given)
    expect(store.increment(`${given}`).totalHits).toBe(2)
    store.decrement(given)
    expect(await store.get(given)).toMatchObject({ totalHits: 1 })
    store.resetKey(given)
    expect(await store.get(given)).toBeUndefined()
  })
})

describe('several limiters of one store value', () => {
  test('count one request each with their own prefixes, and no validation fails', async () => {
    const value = redis.process(ownNamespace())
    const logger = keeping()
    const [minute, hour] = [storeOver(value, { prefix: 'minute' }), storeOver(value, { prefix: 'hour' })]
    const server = await serve(
      rateLimit({ windowMs: HOUR, limit: 2, store: minute, logger }),
      rateLimit({ windowMs: 24 * HOUR, limit: 5, store: hour, logger, standardHeaders: 'draft-8' }),
    )
    expect(await statuses(server, ['/', '/', '/'])).toEqual([200, 200, 429])
    expect(await minute.get(ME)).toMatchObject({ totalHits: 2 })
    expect(await hour.get(ME)).toMatchObject({ totalHits: 2 })
    expect(minute.throttler).toBe(hour.throttler)
    expect(minute.throttler.policies.map(({ name }) => name)).toEqual(['minute', 'hour'])
    minute.resetAll()
    expect(await minute.get(ME)).toBeUndefined()
    expect(await hour.get(ME)).toMatchObject({ totalHits: 2 })
    expect(logger.lines).toEqual([])
  })

  test('with one prefix and different limits fail in the log, and for each request of the second', async () => {
    const value = memoryStore()
    const logger = keeping()
    const first = await serve(rateLimit({ windowMs: HOUR, limit: 2, store: storeOver(value), logger }))
    const second = await serve(rateLimit({ windowMs: HOUR, limit: 3, store: storeOver(value), logger }))
    expect(logger.lines).toEqual([expect.stringMatching(/Two limits of a store have the prefix ""\. Give each its own/)])
    expect([(await first.get()).status, (await second.get()).status]).toEqual([200, 500])
  })

  test('with one prefix and the same limit share counts, which the middleware reports on a shared request', async () => {
    const value = memoryStore()
    const logger = keeping()
    const one = () => rateLimit({ windowMs: HOUR, limit: 4, store: storeOver(value), logger })
    expect(await statuses(await serve(one(), one()), ['/', '/', '/'])).toEqual([200, 200, 429])
    expect(logger.lines.length).toBeGreaterThan(0)
    expect(logger.lines.join()).toMatch(/was incremented more than once for a single request/)
  })
})

describe('the same store object in two limiters', () => {
  test('shares counts if the limits are the same, and the middleware reports it', async () => {
    const logger = keeping()
    const store = storeOver(memoryStore())
    const server = await serve(rateLimit({ windowMs: HOUR, limit: 2, store, logger }))
    const other = await serve(rateLimit({ windowMs: HOUR, limit: 2, store, logger }))
    expect(logger.lines).toEqual([expect.stringMatching(/must not be shared across multiple rate limiters/)])
    expect([(await server.get()).status, (await other.get()).status, (await server.get()).status]).toEqual([200, 200, 429])
  })

  test('fails for each request of both if the limits differ, because one of them would not apply', async () => {
    const logger = keeping()
    const store = storeOver(memoryStore())
    const first = await serve(rateLimit({ windowMs: HOUR, limit: 2, store, logger }))
    const second = await serve(rateLimit({ windowMs: HOUR, limit: 100, store, logger }))
    expect(logger.lines.join()).toMatch(/Two limits of a store have the prefix ""/)
    expect([(await first.get()).status, (await second.get()).status]).toEqual([500, 500])
  })
})

describe('expressRateLimitStore(store, options)', () => {
  test.each([
    [{ limit: 0 }, /"limit" is 0\. Use a number of at least 1/],
    [{ limit: '3' }, /"limit" is "3"\. Use a number of at least 1/],
    [{ prefix: 'é' }, /"prefix" is "é"\. Use up to 64 printable ASCII characters/],
    [{ prefix: 'x'.repeat(65) }, /Use up to 64 printable ASCII characters/],
    [{ windowMs: 1000 }, /Unknown option "windowMs"\. expressRateLimitStore\(\) has: limit, prefix/],
    ['login', /Use options such as \{ prefix: "login" \}/],
  ])('rejects %j', (options, message) => {
    expect(() => expressRateLimitStore(memoryStore(), options as ExpressRateLimitStoreOptions)).toThrow(message)
  })

  test('needs init before the first request', () => {
    const store = storeOver(memoryStore())
    expect(() => store.increment('a')).toThrow(/This store has no limit yet\. Pass it as "store" to rateLimit\(\), or call init\(\)/)
  })
})

describe('shutdown', () => {
  test('closes all limits of the value, and a new store of the same value counts', async () => {
    const value = redis.process(ownNamespace())
    const [one, other] = [storeOver(value, { prefix: 'one' }), storeOver(value, { prefix: 'other' })]
    for (const store of [one, other]) store.init({ windowMs: HOUR, limit: 5 })
    one.increment('a')
    await one.shutdown()
    await other.shutdown()
    for (const store of [one, other]) expect(() => store.increment('a')).toThrow(expect.objectContaining({ code: 'WEIR_CLOSED' }))
    const again = storeOver(value, { prefix: 'one' })
    again.init({ windowMs: HOUR, limit: 5 })
    await expect.poll(() => again.get('a')).toMatchObject({ totalHits: 1 })
    again.increment('a')
    await expect.poll(() => again.get('a')).toMatchObject({ totalHits: 2 })
  })

  test('a request that ends after it throws nothing, because that would end the process', async () => {
    const store = storeOver(memoryStore())
    store.init({ windowMs: HOUR, limit: 1, skipFailedRequests: true })
    store.increment('a')
    await store.shutdown()
    expect(() => store.decrement('a')).not.toThrow()
    expect(() => storeOver(memoryStore()).decrement('a')).not.toThrow()
  })

  test('requests after it fail, or pass with passOnStoreError', async () => {
    for (const [passOnStoreError, status] of [
      [false, 500],
      [true, 200],
    ] as const) {
      const { get, store, lines } = await limited({ passOnStoreError })
      await store.shutdown()
      expect((await get()).status).toBe(status)
      expect(lines).toHaveLength(passOnStoreError ? 1 : 0)
    }
  })
})
