import { type ThrottlerStorage, ThrottlerStorageService } from '@nestjs/throttler'
import { memoryStore } from '@weir/core'
import { redisStore } from '@weir/redis'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { nestThrottlerStorage } from '../../src/nestjs-throttler.ts'
import { fakeTime } from '../fake-time.ts'
import { type Case, PEER_CASES } from './cases.ts'
import { EXCEPTIONS, OWN_CASES } from './own-cases.ts'

const CASES = [...PEER_CASES, ...OWN_CASES]

/** Runs a case, which must fail if it is an exception. */
async function runCase({ title, run }: Case, storage: ThrottlerStorage, pass: (ms: number) => Promise<void>): Promise<void> {
  const running = run(storage, pass)
  await (title in EXCEPTIONS ? expect(running).rejects.toThrow(/^expected/) : running)
}

test('the cases have different titles, and each exception is one of them', () => {
  const titles = CASES.map(({ title }) => title)
  expect(new Set(titles).size).toBe(titles.length)
  expect(titles).toEqual(expect.arrayContaining(Object.keys(EXCEPTIONS)))
})

describe('the storage of @nestjs/throttler itself', () => {
  test.each(CASES)('$title', async ({ run }) => {
    const pass = fakeTime()
    const storage = new ThrottlerStorageService()
    onTestFinished(() => storage.onApplicationShutdown())
    await run(storage, async (ms) => pass(ms))
  })
})

describe('nestThrottlerStorage in memory', () => {
  test.each(CASES)('$title', async (one) => {
    const pass = fakeTime()
    const storage = nestThrottlerStorage(memoryStore())
    onTestFinished(() => storage.onApplicationShutdown())
    await runCase(one, storage, async (ms) => {
      // An answer of the store ensures that earlier ones have arrived: time passes between an answer and its arrival otherwise.
      await storage.throttler.usage('any')
      pass(ms)
    })
  })
})

describe('nestThrottlerStorage with Redis, without the cases in which time passes', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await RedisServer.start()
  })
  afterAll(() => redis.stop())

  test.each(CASES.filter(({ waits }) => waits !== true))('$title', async (one) => {
    const storage = nestThrottlerStorage(redisStore(redis.url, { namespace: one.title.replaceAll(/\W/g, '') }))
    onTestFinished(() => storage.onApplicationShutdown())
    await runCase(one, storage, () => expect.unreachable())
  })
})
