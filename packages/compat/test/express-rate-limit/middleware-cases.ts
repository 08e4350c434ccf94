import { type Options, type RateLimitInfo, rateLimit, type Store } from 'express-rate-limit'
import { expect } from 'vitest'
import type { Case } from './store-cases.ts'
import { HOUR, keeping, ME, type Served, serve, statuses, windowAfter, withinWindow } from './support.ts'

/** Longer than three requests take, and short enough to wait for its end. */
const SHORT = 250
const DAY = 24 * HOUR

/** A limiter that must print no message, and its server. */
async function limited(store: Store, options: Partial<Options> = {}) {
  const logger = keeping()
  const limiter = rateLimit({ windowMs: HOUR, limit: 5, logger, store, ...options })
  const server = await serve(limiter)
  const hits = async (key = ME) => (await limiter.getKey(key))?.totalHits
  return { ...server, limiter, hits, logger }
}

/** Expects these hits of this client after a request, and that no message was printed. */
async function expectHits(
  hits: number,
  store: Store,
  options: Partial<Options>,
  request: (server: Served) => Promise<unknown>,
): Promise<void> {
  const server = await limited(store, options)
  await request(server)
  // On a busy machine, the first answer of the store may be late. The counts of this process show no key with 0 hits.
  await expect.poll(() => server.hits()).toBe(hits)
  expect(server.logger.lines).toEqual([])
}

/** Cases of `skipFailedRequests` and `skipSuccessfulRequests`: the options, the path of one request, and the hits after it. */
const SKIPS: readonly (readonly [name: string, options: Partial<Options>, path: string, hits: number])[] = [
  ['skipSuccessfulRequests takes a successful request back', { skipSuccessfulRequests: true }, '/', 0],
  ['skipSuccessfulRequests counts a failed request', { skipSuccessfulRequests: true }, '/error', 1],
  [
    'skipSuccessfulRequests uses requestWasSuccessful: successful',
    { skipSuccessfulRequests: true, requestWasSuccessful: (req) => req.query['success'] === '1' },
    '/error?success=1',
    0,
  ],
  [
    'skipSuccessfulRequests uses requestWasSuccessful: failed',
    { skipSuccessfulRequests: true, requestWasSuccessful: (req) => req.query['success'] === '1' },
    '/?success=0',
    1,
  ],
  [
    'skipSuccessfulRequests uses requestWasSuccessful: a promise',
    { skipSuccessfulRequests: true, requestWasSuccessful: async () => true },
    '/error',
    0,
  ],
  ['skipFailedRequests takes a failed request back', { skipFailedRequests: true }, '/error', 0],
  ['skipFailedRequests counts a successful request', { skipFailedRequests: true }, '/', 1],
  [
    'skipFailedRequests uses requestWasSuccessful: a promise',
    { skipFailedRequests: true, requestWasSuccessful: async () => false },
    '/',
    0,
  ],
]

/** The headers of one request with a limit of 5 in a day, and of the request without its reset. */
const HEADERS: readonly (readonly [name: string, options: Partial<Options>, expected: Record<string, RegExp>])[] = [
  [
    'legacy headers',
    { legacyHeaders: true },
    { 'x-ratelimit-limit': /^5$/, 'x-ratelimit-remaining': /^4$/, 'x-ratelimit-reset': /^\d{10}$/ },
  ],
  [
    'headers of draft 6',
    { standardHeaders: true },
    { 'ratelimit-policy': /^5;w=86400$/, 'ratelimit-limit': /^5$/, 'ratelimit-remaining': /^4$/, 'ratelimit-reset': /^\d{1,5}$/ },
  ],
  [
    'headers of draft 7',
    { standardHeaders: 'draft-7' },
    { 'ratelimit-policy': /^5;w=86400$/, ratelimit: /^limit=5, remaining=4, reset=\d{1,5}$/ },
  ],
  [
    'headers of draft 8',
    { standardHeaders: 'draft-8', keyGenerator: () => 'foo' },
    { 'ratelimit-policy': /^"5-in-1day"; q=5; w=86400; pk=:MmMyNmI0NmI2OGZm:$/, ratelimit: /^"5-in-1day"; r=4; t=\d{1,5}$/ },
  ],
]

export const MIDDLEWARE_CASES: readonly Case[] = [
  {
    name: 'getKey answers before the first request',
    async run(make) {
      const logger = keeping()
      expect(await rateLimit({ store: make(), logger }).getKey(ME)).toBeUndefined()
      expect(logger.lines).toEqual([])
    },
  },
  {
    name: 'requests above the limit are rejected',
    async run(make) {
      expect(await statuses(await limited(make(), { limit: 3 }), ['/', '/', '/', '/'])).toEqual([200, 200, 200, 429])
    },
  },
  {
    name: 'the limit applies again in each window',
    async run(make) {
      const server = await limited(make(), { limit: 2, windowMs: SHORT })
      for (let round = 1; round <= 2; round++) {
        expect(await withinWindow(SHORT, () => statuses(server, ['/', '/', '/']))).toEqual([200, 200, 429])
        // Windows of the memory store end later.
        await windowAfter(SHORT)
      }
    },
  },
  {
    name: 'a limit of 0 rejects each request',
    async run(make) {
      expect(await statuses(await limited(make(), { limit: 0, validate: { limit: false } }), ['/', '/'])).toEqual([429, 429])
    },
  },
  {
    name: 'keyGenerator makes a count for each key',
    async run(make) {
      const server = await limited(make(), { limit: 2, keyGenerator: (req) => `${req.query['key']}` })
      const found = await statuses(
        server,
        [1, 1, 2, 1, 2, 2].map((key) => `/?key=${key}`),
      )
      expect(found).toEqual([200, 200, 200, 429, 200, 429])
    },
  },
  ...[() => true, async () => true].map((skip, asynchronous) => ({
    name: `skipped requests are not counted${asynchronous === 1 ? ', with a promise' : ''}`,
    async run(make: () => Store) {
      const server = await limited(make(), { limit: 1, skip })
      expect(await statuses(server, ['/', '/'])).toEqual([200, 200])
      expect(await server.hits()).toBeUndefined()
    },
  })),
  ...[() => 2, async () => 2].map((limit, asynchronous) => ({
    name: `limit may be a function${asynchronous === 1 ? ' that returns a promise' : ''}`,
    async run(make: () => Store) {
      expect(await statuses(await limited(make(), { limit }), ['/', '/', '/'])).toEqual([200, 200, 429])
    },
  })),
  {
    name: 'getKey returns the hits of a key, and resetKey removes it',
    async run(make) {
      const { limiter, get, hits } = await limited(make(), { limit: 1 })
      await get()
      expect(await limiter.getKey(ME)).toMatchObject({ totalHits: 1, resetTime: expect.any(Date) })
      limiter.resetKey(ME)
      expect(await hits()).toBeUndefined()
      expect((await get()).status).toBe(200)
    },
  },
  ...SKIPS.map(([name, options, path, hits]) => ({
    name,
    run: (make: () => Store) => expectHits(hits, make(), options, ({ get }) => get(path)),
  })),
  {
    name: 'skipFailedRequests takes a request back if its client closes the connection',
    async run(make) {
      await expectHits(0, make(), { skipFailedRequests: true }, ({ abort }) => abort('/hang'))
    },
  },
  {
    name: 'skipFailedRequests takes a request back if its response fails',
    async run(make) {
      const failing = ({ get }: Served) => expect(get('/crash')).rejects.toThrow()
      const { hits, ...server } = await limited(make(), { skipFailedRequests: true })
      await failing(server)
      await expect.poll(() => hits()).toBe(0)
    },
  },
  {
    name: 'skipFailedRequests takes a rejected request back',
    async run(make) {
      const server = await limited(make(), { skipFailedRequests: true, limit: 2 })
      expect(await statuses(server, ['/', '/', '/', '/'])).toEqual([200, 200, 429, 429])
      expect(await server.hits()).toBe(2)
    },
  },
  {
    name: 'a request that ends after its window is not taken back from the next window',
    async run(make) {
      const store = make()
      let release = () => {}
      const limiter = rateLimit({ store, windowMs: SHORT, limit: 5, skipSuccessfulRequests: true, logger: keeping() })
      const waiting = new Promise<void>((resolve) => {
        release = resolve
      })
      let reached = () => {}
      const counted = new Promise<void>((resolve) => {
        reached = resolve
      })
      const { get } = await serve(limiter, async (_req, _res, next) => {
        reached()
        await waiting
        next()
      })
      const slow = get()
      await counted
      await windowAfter(SHORT)
      const hits = await withinWindow(SHORT, async () => {
        await store.resetKey(ME)
        await store.increment(ME)
        release()
        await slow
        return (await limiter.getKey(ME))?.totalHits
      })
      expect(hits).toBe(1)
    },
  },
  {
    name: 'the request gets the limit, the hits and the end of its window',
    async run(make) {
      const found: RateLimitInfo[] = []
      const store = make()
      const limiter = rateLimit({ store, windowMs: HOUR, limit: 6, requestPropertyName: 'info', logger: keeping() })
      const { get } = await serve(limiter, (req, _res, next) => {
        found.push((req as unknown as { info: RateLimitInfo }).info)
        next()
      })
      await get()
      await get()
      expect(found).toMatchObject([
        { limit: 6, used: 1, remaining: 5, key: ME, resetTime: expect.any(Date) },
        { limit: 6, used: 2, remaining: 4, key: ME, resetTime: expect.any(Date) },
      ])
    },
  },
  {
    name: 'two limiters with stores of their own count a request independently',
    async run(make) {
      const logger = keeping()
      const all = { windowMs: HOUR, logger }
      const each = rateLimit({ ...all, store: make(), limit: 2, keyGenerator: (req) => `${req.query['key']}`, statusCode: 420 })
      const server = await serve(each, rateLimit({ ...all, store: make(), limit: 5, keyGenerator: () => 'all' }))
      const found = await statuses(
        server,
        [1, 2, 1, 2, 1, 3, 3].map((key) => `/?key=${key}`),
      )
      expect(found).toEqual([200, 200, 200, 200, 420, 200, 429])
    },
  },
  ...HEADERS.map(([name, options, expected]) => ({
    name: `${name} show the limit and the remaining hits`,
    async run(make: () => Store) {
      const { get, logger } = await limited(make(), { legacyHeaders: false, windowMs: DAY, ...options })
      const { headers } = await get()
      for (const [header, value] of Object.entries(expected)) expect(headers.get(header), header).toMatch(value)
      expect(headers.has('retry-after')).toBe(false)
      expect(logger.lines).toEqual([])
    },
  })),
  {
    name: 'headers of the first request show the whole window',
    async run(make) {
      // The time left must differ from the window in whole seconds.
      while (Date.now() % DAY < 3_000) await new Promise((resolve) => setTimeout(resolve, 100))
      const { get } = await limited(make(), { windowMs: DAY, standardHeaders: true })
      expect((await get()).headers.get('ratelimit-reset')).toBe('86400')
    },
  },
  {
    name: 'retry-after shows the seconds until the window ends',
    async run(make) {
      const { get } = await limited(make(), { limit: 1 })
      await get()
      const { headers } = await get()
      const seconds = Number(headers.get('retry-after'))
      expect(seconds).toBeGreaterThan(0)
      expect(seconds).toBeLessThanOrEqual(3600)
      // `x-ratelimit-reset` is the same time, in seconds since 1970, and `date` the time of the response.
      const sent = Date.parse(`${headers.get('date')}`) / 1000
      expect(Math.abs(Number(headers.get('x-ratelimit-reset')) - sent - seconds)).toBeLessThanOrEqual(2)
    },
  },
  {
    name: 'the validations of the middleware find no error',
    async run(make) {
      const { get, logger } = await limited(make(), { limit: 1, standardHeaders: 'draft-8', legacyHeaders: true })
      await get()
      await get()
      expect(logger.lines).toEqual([])
    },
  },
]
