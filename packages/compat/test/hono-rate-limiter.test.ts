import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { serve as listen } from '@hono/node-server'
import { memoryStore, type Store as WeirStore } from '@weir/core'
import { Hono } from 'hono'
import { type HonoConfigProps, rateLimiter } from 'hono-rate-limiter'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ExpressRateLimitStoreOptions } from '../src/express-rate-limit.ts'
import { HOUR, storeOver, weirStores } from './express-rate-limit/support.ts'

interface Env {
  Variables: {
    rateLimit: { limit: number; used: number; remaining: number; resetTime: Date }
    rateLimitStore: { getKey(key: string): Promise<{ totalHits: number } | undefined>; resetKey(key: string): void }
  }
}

async function limited(value: WeirStore, options: Partial<HonoConfigProps<Env>> = {}, storeOptions: ExpressRateLimitStoreOptions = {}) {
  const store = storeOver(value, storeOptions)
  const app = new Hono<Env>()
  app.use(rateLimiter<Env>({ windowMs: HOUR, limit: 2, keyGenerator: (c) => c.req.query('key') ?? 'me', store, ...options }))
  app.get('/', (c) => c.json(c.get('rateLimit')))
  app.get('/status/:code', (c) => c.body(null, Number(c.req.param('code')) as 400))
  app.get('/throw', () => {
    throw new Error('broken')
  })
  app.get('/own', async (c) => c.json((await c.get('rateLimitStore').getKey('me')) ?? null))
  app.get('/reset', (c) => {
    c.get('rateLimitStore').resetKey('other')
    return c.text('done')
  })
  app.onError((_error, c) => c.text('broken', 500))
  const server = listen({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  if (!server.listening) await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
    await once(server, 'close')
  })
  const get = async (path = '/') => {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const statuses = async (...paths: string[]) => {
    const found: number[] = []
    for (const path of paths) found.push((await get(path)).status)
    return found
  }
  return { get, statuses, hits: async () => (await store.get('me'))?.totalHits }
}

describe.each(weirStores())('hono-rate-limiter with %s', (_name, value) => {
  test('rejects requests above the limit, for each key', async () => {
    const { get, statuses } = await limited(value())
    expect(JSON.parse((await get()).text)).toMatchObject({ limit: 2, used: 1, remaining: 1 })
    expect(await statuses('/', '/', '/?key=other')).toEqual([200, 429, 200])
    const { headers } = await get()
    expect(headers.get('ratelimit-limit')).toBe('2')
    expect(headers.get('ratelimit-remaining')).toBe('0')
    expect(headers.get('retry-after')).toBe(headers.get('ratelimit-reset'))
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(3600)
  })

  test('sends headers of draft 7', async () => {
    const { get } = await limited(value(), { standardHeaders: 'draft-7' })
    const { headers } = await get()
    expect(headers.get('ratelimit-policy')).toBe('2;w=3600')
    expect(headers.get('ratelimit')).toMatch(/^limit=2, remaining=1, reset=\d{1,4}$/)
  })

  test('limit may be a function with { limit }', async () => {
    const { statuses } = await limited(value(), { limit: async (c) => (c.req.query('plan') === 'pro' ? 3 : 1) }, { limit: 3 })
    expect(await statuses('/', '/', '/?plan=pro', '/?plan=pro')).toEqual([200, 429, 200, 429])
  })

  test('handlers can read and reset keys', async () => {
    const { get, statuses } = await limited(value())
    expect(JSON.parse((await get('/own')).text)).toMatchObject({ totalHits: 1 })
    expect(await statuses('/?key=other', '/?key=other', '/?key=other', '/reset', '/?key=other')).toEqual([200, 200, 429, 200, 200])
  })

  test.each<[string, Partial<HonoConfigProps<Env>>, path: string, status: number, other: string]>([
    ['skipFailedRequests', { skipFailedRequests: true }, '/status/400', 400, '/'],
    ['skipFailedRequests, for an error of the handler', { skipFailedRequests: true }, '/throw', 500, '/'],
    ['skipSuccessfulRequests', { skipSuccessfulRequests: true }, '/', 200, '/status/400'],
    [
      'skipFailedRequests with requestWasSuccessful',
      { skipFailedRequests: true, requestWasSuccessful: async (c) => c.res.status === 204 },
      '/',
      200,
      '/status/204',
    ],
  ])('%s takes requests back', async (_option, options, path, status, other) => {
    const { statuses, hits } = await limited(value(), options)
    expect(await statuses(path, path, path)).toEqual([status, status, status])
    await expect.poll(() => hits()).toBe(0)
    await statuses(other, other)
    expect(await hits()).toBe(2)
  })

  test('rejected requests return no units of allowed ones', async () => {
    // For hono-rate-limiter, a rejected request has no response yet, so that it counts as successful.
    const { statuses, hits } = await limited(value(), { skipSuccessfulRequests: true })
    await statuses('/status/400', '/status/400')
    expect(await statuses(...Array<string>(10).fill('/'))).toEqual(Array(10).fill(429))
    expect(await hits()).toBe(2)
  })
})

test.each<[string, Partial<HonoConfigProps<Env>>, RegExp]>([
  ['a function as the limit', { limit: () => 2 }, /The middleware's limit is a function\. Use expressRateLimitStore\(store, \{ limit \}\)/],
  ['a limit of 0', { limit: 0 }, /The middleware's limit is 0\./],
  ['a window of 1 ms', { windowMs: 1 }, /"windowMs" is 1\. Use a number of milliseconds from 30/],
])('%s fails at construction', async (_name, options, message) => {
  await expect(limited(memoryStore(), options)).rejects.toThrow(message)
})
