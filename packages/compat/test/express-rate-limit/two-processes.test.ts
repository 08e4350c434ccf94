import { rateLimit } from 'express-rate-limit'
import { expect, test } from 'vitest'
import type { ExpressRateLimitStore } from '../../src/express-rate-limit.ts'
import { HOUR, keeping, ME, ownNamespace, ownRedis, serve, statuses, storeOver } from './support.ts'

const redis = ownRedis()
const LIMIT = 20

/** Two processes with the same limit, whose counts are in one Redis. */
function two(options: object = {}): [one: ExpressRateLimitStore, other: ExpressRateLimitStore] {
  const namespace = ownNamespace()
  const [one, other] = [0, 1].map(() => {
    const store = storeOver(redis.process(namespace))
    store.init({ windowMs: HOUR, limit: LIMIT, ...options })
    return store
  }) as [ExpressRateLimitStore, ExpressRateLimitStore]
  return [one, other]
}

/** Counts `LIMIT` requests of a key in the first process, and waits until the other one rejects it. */
async function atLimit(key = 'a', options: object = {}): Promise<[one: ExpressRateLimitStore, other: ExpressRateLimitStore]> {
  const [one, other] = two(options)
  // Otherwise the other process counts alone until it is connected.
  await other.get(key)
  for (let hit = 1; hit <= LIMIT; hit++) one.increment(key)
  await expect.poll(() => other.increment(key).totalHits).toBe(LIMIT + 1)
  return [one, other]
}

test('get returns the hits of all processes', async () => {
  const [one, other] = two()
  for (let hit = 1; hit <= 3; hit++) one.increment('a')
  other.increment('a')
  for (const store of [one, other]) await expect.poll(async () => (await store.get('a'))?.totalHits).toBe(4)
  expect(await other.get('b')).toBeUndefined()
})

test('a key at its limit is rejected by the other process too', async () => {
  const [one, other] = await atLimit()
  expect([one.increment('a').totalHits, other.increment('a').totalHits]).toEqual([LIMIT + 1, LIMIT + 1])
  expect(other.increment('b').totalHits).toBe(1)
})

test('decrement makes a request possible in the other process', async () => {
  const [one, other] = await atLimit()
  for (let hit = 1; hit <= LIMIT; hit++) one.decrement('a')
  await expect.poll(() => other.increment('a').totalHits).toBeLessThanOrEqual(LIMIT)
})

test('decrement takes back only requests that its process counted', async () => {
  const [one, other] = two()
  one.increment('a')
  await expect.poll(async () => (await other.get('a'))?.totalHits).toBe(1)
  other.decrement('a')
  other.increment('a')
  for (const store of [one, other]) await expect.poll(async () => (await store.get('a'))?.totalHits).toBe(2)
})

test.each<[string, (store: ExpressRateLimitStore) => void]>([
  ['resetKey', (store) => store.resetKey('a')],
  ['resetAll', (store) => store.resetAll()],
])('%s reaches the other process', async (_name, reset) => {
  const [one, other] = await atLimit()
  reset(one)
  await expect.poll(() => other.increment('a').totalHits).toBe(1)
  await expect.poll(async () => (await one.get('a'))?.totalHits).toBe(1)
})

test('successful requests are taken back after a reset in the other process, even if requests were rejected before', async () => {
  const namespace = ownNamespace()
  const [one, other] = [0, 1].map(() => storeOver(redis.process(namespace))) as [ExpressRateLimitStore, ExpressRateLimitStore]
  const options = { windowMs: HOUR, limit: 2, skipSuccessfulRequests: true, logger: keeping() }
  const server = await serve(rateLimit({ ...options, store: one }))
  rateLimit({ ...options, store: other })
  expect(await statuses(server, ['/error', '/error', '/', '/', '/'])).toEqual([400, 400, 429, 429, 429])
  await expect.poll(async () => (await other.get(ME))?.totalHits).toBe(2)
  other.resetKey(ME)
  await expect.poll(async () => (await server.get()).status).toBe(200)
  expect(await statuses(server, ['/', '/', '/', '/'])).toEqual([200, 200, 200, 200])
})

test('rejected requests that are taken back cause no syncs of their own', async () => {
  const [one] = await atLimit('a', { skipFailedRequests: true })
  const calls = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.command('info', 'commandstats'))?.[1])
  const before = await calls()
  for (let request = 1; request <= 200; request++) {
    expect(one.increment('a').totalHits).toBe(LIMIT + 1)
    // Time to send something.
    await redis.command('ping')
    one.decrement('a')
  }
  expect((await calls()) - before).toBeLessThan(100)
})
