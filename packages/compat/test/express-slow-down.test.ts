import { memoryStore, type Store as WeirStore } from '@weir/core'
import { rateLimit } from 'express-rate-limit'
import { type Options, slowDown } from 'express-slow-down'
import { describe, expect, test } from 'vitest'
import type { ExpressRateLimitStoreOptions } from '../src/express-rate-limit.ts'
import { HOUR, keeping, ME, type Served, serve, statuses, storeOver, weirStores } from './express-rate-limit/support.ts'

interface Slowed extends Served {
  /** The hits and the delay in milliseconds of each request. */
  readonly delays: [used: number, delay: number][]
  readonly lines: readonly string[]
  readonly hits: () => Promise<number | undefined>
}

async function slowed(value: WeirStore, storeOptions: ExpressRateLimitStoreOptions, options: Partial<Options> = {}): Promise<Slowed> {
  const { lines, ...logger } = keeping()
  const store = storeOver(value, storeOptions)
  const delays: Slowed['delays'] = []
  const limiter = slowDown({ windowMs: HOUR, delayAfter: 2, delayMs: (used) => used - 2, store, logger, ...options })
  const server = await serve(limiter, (req, _res, next) => {
    const info = (req as unknown as { slowDown: { used: number; delay: number } }).slowDown
    delays.push([info.used, info.delay])
    next()
  })
  return { ...server, delays, lines, hits: async () => (await store.get(ME))?.totalHits }
}

describe.each(weirStores())('express-slow-down with %s', (_name, value) => {
  test('delays grow up to { limit }, and further requests get the longest one', async () => {
    const server = await slowed(value(), { limit: 4 })
    expect(await statuses(server, ['/', '/', '/', '/', '/', '/'])).toEqual(Array(6).fill(200))
    expect(server.delays).toEqual([
      [1, 0],
      [2, 0],
      [3, 1],
      [4, 2],
      [5, 3],
      [5, 3],
    ])
    expect(server.lines).toEqual([])
  })

  test.each([
    ['skipFailedRequests', { skipFailedRequests: true }, '/error'],
    ['skipSuccessfulRequests', { skipSuccessfulRequests: true }, '/'],
  ])('%s takes requests back, even delayed ones', async (_option, options, path) => {
    const server = await slowed(value(), { limit: 3 }, options)
    const other = path === '/' ? '/error' : '/'
    await statuses(server, [path, path, other, other, path, other, other, path, path])
    // The longest delay begins with the fourth hit, and requests beyond the limit of the store are not counted.
    expect(server.delays.map(([used]) => used)).toEqual([1, 1, 1, 2, 3, 3, 4, 4, 4])
    expect(await server.hits()).toBe(3)
  })

  test('shares a store value with rateLimit, on the same request', async () => {
    const shared = value()
    const logger = keeping()
    const server = await serve(
      slowDown({ windowMs: HOUR, delayAfter: 1, delayMs: () => 1, store: storeOver(shared, { limit: 2, prefix: 'slow' }), logger }),
      rateLimit({ windowMs: HOUR, limit: 3, store: storeOver(shared), logger }),
    )
    expect(await statuses(server, ['/', '/', '/', '/'])).toEqual([200, 200, 200, 429])
    expect(logger.lines).toEqual([])
  })
})

test('without { limit } it fails at construction in the log, and for each request', async () => {
  const server = await slowed(memoryStore(), {})
  expect(server.lines).toEqual([
    expect.stringMatching(
      /Use expressRateLimitStore\(store, \{ limit \}\) with 1, or for express-slow-down the number of hits from which on the delay is the longest/,
    ),
  ])
  expect(await statuses(server, ['/', '/'])).toEqual([500, 500])
})
