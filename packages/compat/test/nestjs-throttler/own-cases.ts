import { Controller, Get } from '@nestjs/common'
import { minutes, seconds, type ThrottlerStorage } from '@nestjs/throttler'
import { expect } from 'vitest'
import { start } from './app.ts'
import type { Case } from './cases.ts'

@Controller()
class Root {
  @Get()
  root() {
    return 'root'
  }
}

const HOUR = minutes(60)

/** Statuses of as many requests to a handler with this limit. */
async function statuses(storage: ThrottlerStorage, count: number, limit: number, more: object = {}): Promise<number[]> {
  const app = await start(storage, [{ limit, ttl: HOUR, ...more }], [Root])
  const found: number[] = []
  for (let request = 0; request < count; request++) found.push((await app.get('/')).status)
  return found
}

/** Cases that the tests of @nestjs/throttler leave out. */
export const OWN_CASES: readonly Case[] = [
  {
    title: 'limit 0 and negative limits reject all requests',
    run: async (storage) => {
      expect(await statuses(storage, 2, 0)).toEqual([429, 429])
      expect(await statuses(storage, 2, -1)).toEqual([429, 429])
    },
  },
  {
    title: 'a request above limit 0 must wait for the ttl',
    waits: true,
    run: async (storage) => {
      const app = await start(storage, [{ limit: 0, ttl: HOUR }], [Root])
      expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': '3600' })
    },
  },
  {
    title: 'limit Infinity allows all requests',
    run: async (storage) => {
      expect(await statuses(storage, 12, Number.POSITIVE_INFINITY)).toEqual(Array(12).fill(200))
    },
  },
  {
    title: 'limit 2.5 allows two requests',
    run: async (storage) => {
      expect(await statuses(storage, 3, 2.5)).toEqual([200, 200, 429])
    },
  },
  {
    title: 'a limit that is no number is an error of the server',
    run: async (storage) => {
      expect(await statuses(storage, 1, Number.NaN)).toEqual([500])
    },
  },
  {
    title: 'the hits of a rejected request are one above the limit, however often it is repeated',
    run: async (storage) => {
      const hits: number[] = []
      for (let request = 0; request < 5; request++) hits.push((await storage.increment('key', HOUR, 2, HOUR, 'test')).totalHits)
      expect(hits).toEqual([1, 2, 3, 3, 3])
    },
  },
  {
    title: 'one key has counts of its own for each throttler and limit',
    run: async (storage) => {
      for (const name of ['a', 'b']) {
        for (const isBlocked of [false, true])
          expect(await storage.increment(`key of ${name}`, HOUR, 1, HOUR, name)).toMatchObject({ isBlocked })
      }
    },
  },
  {
    title: 'without blockDuration, the block lasts for the ttl',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 1, ttl: seconds(10) }], [Root])
      await app.get('/')
      expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': '10' })
      await pass(seconds(9))
      expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': '1' })
      await pass(seconds(1))
      expect((await app.get('/')).status).toBe(200)
    },
  },
  {
    title: 'requests during a block don’t prolong it',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 1, ttl: seconds(60), blockDuration: seconds(4) }], [Root])
      await app.get('/')
      for (const wait of ['4', '3', '2', '1']) {
        expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': wait })
        await pass(seconds(1))
      }
      expect((await app.get('/')).status).toBe(200)
    },
  },
  {
    title: 'with blockDuration 0, requests are rejected until the end of the window',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 1, ttl: seconds(10), blockDuration: 0 }], [Root])
      await app.get('/')
      expect(await app.limits('/')).toEqual({ status: '429', 'retry-after': '10' })
      await pass(seconds(10))
      expect((await app.get('/')).status).toBe(200)
    },
  },
  {
    title: 'each request counts for a whole ttl',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 2, ttl: seconds(10), blockDuration: 0 }], [Root])
      await pass(seconds(6))
      await app.get('/')
      await pass(seconds(3))
      await app.get('/')
      await pass(seconds(3))
      expect((await app.get('/')).status).toBe(429)
    },
  },
  {
    title: 'X-RateLimit-Reset counts from the first request of a key',
    waits: true,
    run: async (storage, pass) => {
      const app = await start(storage, [{ limit: 2, ttl: seconds(10) }], [Root])
      await pass(seconds(6))
      expect((await app.get('/')).headers.get('x-ratelimit-reset')).toBe('10')
    },
  },
  {
    title: 'another limit or ttl of the same key counts the earlier requests',
    run: async (storage) => {
      await storage.increment('key', HOUR, 2, 0, 'test')
      await storage.increment('key', HOUR, 2, 0, 'test')
      expect(await storage.increment('key', HOUR, 3, 0, 'test')).toMatchObject({ totalHits: 3, isBlocked: false })
    },
  },
]

const WINDOWS = 'Windows begin at whole multiples of the ttl, for all keys at the same time, and not with each request.'

/** Cases that `nestThrottlerStorage` can't pass, and the reason. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  'each request counts for a whole ttl': WINDOWS,
  'X-RateLimit-Reset counts from the first request of a key': WINDOWS,
  'another limit or ttl of the same key counts the earlier requests':
    'Each limit and ttl has its own counts. Requests of a key under another limit, such as after an upgrade to a better plan, are not included.',
}
