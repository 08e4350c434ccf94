import { setTimeout } from 'node:timers/promises'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expressRateLimitStore } from '../../src/express-rate-limit.ts'
import { type Limited, SERVERS } from './servers.ts'

const LIMIT = 5

describe.each(Object.entries(SERVERS))('%s', (_name, start) => {
  let redis: RedisServer
  let one: Limited
  let other: Limited
  let addresses = 0
  const address = () => `10.0.0.${++addresses}`

  beforeAll(async () => {
    redis = await RedisServer.start()
    await redis.kill()
    one = await start(redisStore(redis.url), LIMIT)
    other = await start(redisStore(redis.url), LIMIT)
  })
  afterAll(async () => {
    await Promise.all([one.close(), other.close()])
    await redis.stop()
  })

  /** The number of requests that a server allows of more than its limit. Each is allowed or rejected. */
  async function allowedBy(server: Limited, client: string): Promise<number> {
    const statuses: number[] = []
    for (let i = 0; i < 2 * LIMIT; i++) statuses.push(await server.get(client))
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([])
    expect(statuses.slice(LIMIT)).toEqual(Array(LIMIT).fill(429))
    return statuses.filter((status) => status === 200).length
  }

  /** Waits until a request is rejected that only the counts of the other server can reject: the second of a client. */
  async function share(): Promise<void> {
    await expect
      .poll(async () => {
        const client = address()
        await allowedBy(one, client)
        await other.get(client)
        await setTimeout(200)
        return other.get(client)
      })
      .toBe(429)
  }

  test('Redis unreachable from the start: each process applies the limit, and counts are shared once Redis is there', async () => {
    expect(await allowedBy(one, address())).toBe(LIMIT)
    expect(await allowedBy(other, address())).toBe(LIMIT)
    await redis.start()
    await share()
  })

  test('Redis hangs: requests are answered, limits still apply, and counts are shared afterwards', async () => {
    const used = address()
    await allowedBy(one, used)
    redis.pause()
    try {
      expect(await one.get(used)).toBe(429)
      for (let i = 0; i < 3; i++) expect(await allowedBy(one, address())).toBeGreaterThanOrEqual(1)
      await expect.poll(() => one.throttler.state).toBe('storeDown')
      expect(await allowedBy(one, address())).toBeGreaterThanOrEqual(1)
      expect(await one.get(used)).toBe(429)
    } finally {
      redis.resume()
    }
    await share()
    expect(await one.get(used)).toBe(429)
  })

  test('Redis killed and restarted empty: requests are answered, limits still apply, and counts are shared afterwards', async () => {
    const used = address()
    await allowedBy(one, used)
    await redis.kill()
    expect(await allowedBy(one, address())).toBeGreaterThanOrEqual(1)
    await expect.poll(() => one.throttler.state).toBe('storeDown')
    expect(await allowedBy(one, address())).toBeGreaterThanOrEqual(1)
    expect(await one.get(used)).toBe(429)
    await redis.start()
    await share()
    expect(await one.get(used)).toBe(429)
  })
})

test('get, resetKey, resetAll and shutdown settle while Redis hangs', async () => {
  const redis = await RedisServer.start()
  try {
    const store = expressRateLimitStore(redisStore(redis.url))
    store.init({ windowMs: 3_600_000, limit: LIMIT })
    store.throttler.start()
    await expect.poll(() => store.throttler.state).toBe('synced')
    redis.pause()
    store.increment('client')
    expect(await store.get('client')).toMatchObject({ totalHits: 1 })
    expect(await store.get('other')).toBeUndefined()
    expect(store.resetKey('client')).toBeUndefined()
    expect(store.increment('client').totalHits).toBe(1)
    expect(store.resetAll()).toBeUndefined()
    expect(store.increment('client').totalHits).toBe(1)
    expect(await store.shutdown()).toBeUndefined()
  } finally {
    await redis.stop()
  }
})
