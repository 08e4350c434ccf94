import { memoryStore, type Store as WeirStore } from '@weir/core'
import { type Options, rateLimit } from 'express-rate-limit'
import { describe, expect, test } from 'vitest'
import { HOUR, keeping, ME, serve, statuses, storeOver, weirStores, withinWindow } from './support.ts'

async function limited(value: WeirStore, options: Partial<Options>) {
  const logger = keeping()
  const store = storeOver(value)
  const limiter = rateLimit({ windowMs: HOUR, limit: 2, logger, store, ...options })
  const hits = async () => (await store.get(ME))?.totalHits
  return { ...(await serve(limiter)), store, limiter, hits, logger }
}

const MANY = Array<string>(20).fill('/')

describe.each(weirStores())('requests that are taken back, with %s', (_name, value) => {
  test('with both options, no request counts', async () => {
    const server = await limited(value(), { skipFailedRequests: true, skipSuccessfulRequests: true })
    expect(await statuses(server, ['/', '/error', '/', '/error', '/'])).toEqual([200, 400, 200, 400, 200])
    await expect.poll(() => server.hits()).toBe(0)
  })

  test.each<[string, Partial<Options>]>([
    ['skipFailedRequests', { skipFailedRequests: true }],
    [
      'skipFailedRequests, if all count as failed',
      { skipFailedRequests: true, requestWasSuccessful: (_req, res) => res.statusCode !== 429 },
    ],
    [
      'skipSuccessfulRequests, if a 429 counts as a success',
      { skipSuccessfulRequests: true, requestWasSuccessful: (_req, res) => res.statusCode === 429 },
    ],
  ])('a rejected request returns no units of allowed ones, with %s', async (_options, options) => {
    const server = await limited(value(), options)
    expect(await statuses(server, MANY)).toEqual([200, 200, ...Array(18).fill(429)])
    expect(await server.hits()).toBe(2)
  })

  test('rejected requests at the same time as allowed ones return no units', async () => {
    const { url, hits } = await limited(value(), { skipFailedRequests: true })
    const found = await Promise.all(MANY.map(async () => (await fetch(url)).status))
    expect(found.filter((status) => status === 200)).toHaveLength(2)
    expect(await hits()).toBe(2)
  })

  test('a limit of failed logins: successes are taken back, and rejected requests do not count', async () => {
    const server = await limited(value(), { skipSuccessfulRequests: true })
    expect(await statuses(server, ['/', '/error', '/', '/error', '/', '/'])).toEqual([200, 400, 200, 400, 429, 429])
    server.limiter.resetKey(ME)
    expect(await statuses(server, ['/', '/', '/', '/', '/error', '/error', '/'])).toEqual([200, 200, 200, 200, 400, 400, 429])
  })

  test('a request that is in flight at a reset returns no units of later ones', async () => {
    const store = storeOver(value())
    store.init({ windowMs: HOUR, limit: 2, skipFailedRequests: true })
    store.increment('a')
    store.increment('a')
    store.increment('a')
    store.resetKey('a')
    for (let request = 1; request <= 3; request++) store.decrement('a')
    expect([1, 2, 3].map(() => store.increment('a').totalHits)).toEqual([1, 2, 3])
  })

  test('decrement without a request returns nothing', async () => {
    const store = storeOver(value())
    store.init({ windowMs: HOUR, limit: 2, skipFailedRequests: true })
    for (let call = 1; call <= 5; call++) store.decrement('a')
    expect([1, 2, 3].map(() => store.increment('a').totalHits)).toEqual([1, 2, 3])
  })
})

test('a blocked key changes nothing for the requests of others that are taken back', async () => {
  const SHORT = 250
  const store = storeOver(memoryStore())
  store.init({ windowMs: SHORT, limit: 5, skipFailedRequests: true })
  store.throttler.block('blocked', '1d')
  store.increment('blocked')
  for (let more = 1; more <= 10; more++) store.increment('a')
  const hits = await withinWindow(SHORT, async () => {
    store.increment('blocked')
    for (let more = 1; more <= 5; more++) store.increment('a')
    for (let more = 1; more <= 5; more++) store.decrement('a')
    return store.increment('a').totalHits
  })
  expect(hits).toBe(1)
})

test('one limiter of a store object that is used twice takes no rejected requests back as allowed ones', async () => {
  const store = storeOver(memoryStore())
  const options = { windowMs: HOUR, limit: 2, store, logger: keeping() }
  const taking = await serve(rateLimit({ ...options, skipFailedRequests: true }))
  await serve(rateLimit(options))
  expect(await statuses(taking, MANY)).toEqual([200, 200, ...Array(18).fill(429)])
})
