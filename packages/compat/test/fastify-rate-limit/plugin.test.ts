import rateLimit from '@fastify/rate-limit'
import { memoryStore } from '@weir/core'
import Fastify, { type FastifyInstance } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { type FastifyWeirStore, fastifyRateLimitStore } from '../../src/fastify-rate-limit.ts'

const HOUR = 3_600_000

/** Starts a server with the plugin, and returns a function that sends requests to it and resolves with their statuses. */
async function start(store: FastifyWeirStore, options: object, routes: (app: FastifyInstance) => void) {
  const app = Fastify()
  onTestFinished(() => app.close())
  onTestFinished(() => store.throttler.close())
  await app.register(rateLimit, { timeWindow: HOUR, store, ...options })
  routes(app)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return async (...requests: string[]) => {
    const found: number[] = []
    for (const request of requests) {
      const [method = '', path = ''] = request.split(' ')
      const response = await fetch(url + path, { method })
      await response.arrayBuffer()
      found.push(response.status)
    }
    return found
  }
}

test('routes with options of their own count apart, and the others together', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const statuses = await start(store, { max: 2 }, (app) => {
    for (const path of ['/a', '/b']) app.get(path, async () => path)
    for (const path of ['/c', '/d']) app.get(path, { config: { rateLimit: { max: 1 } } }, async () => path)
    app.post('/c', { config: { rateLimit: { max: 1 } } }, async () => 'posted')
  })
  expect(await statuses('GET /a', 'GET /b', 'GET /a', 'GET /b')).toEqual([200, 200, 429, 429])
  expect(await statuses('GET /c', 'GET /c', 'GET /d', 'GET /d')).toEqual([200, 429, 200, 429])
  expect(await statuses('POST /c', 'POST /c')).toEqual([200, 429])
  expect(store.throttler.policies.map(({ name }) => name)).toEqual(['fastify-rate-limit:2/3600s', 'fastify-rate-limit:1/3600s'])
  expect(await store.throttler.usage('GET/c 127.0.0.1', { policy: 'fastify-rate-limit:1/3600s' })).toMatchObject([{ used: 1 }])
})

test('limiters that belong to no route count apart', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const statuses = await start(store, { global: false }, (app) => {
    for (const path of ['/a', '/b']) app.get(path, { onRequest: app.rateLimit({ max: 1 }) }, async () => path)
  })
  expect(await statuses('GET /a', 'GET /b', 'GET /a', 'GET /b')).toEqual([200, 200, 429, 429])
})

test('a client is banned after as many rejected requests as ban', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const statuses = await start(store, { max: 2, ban: 2 }, (app) => app.get('/', async () => 'root'))
  expect(await statuses(...Array(7).fill('GET /'))).toEqual([200, 200, 429, 429, 403, 403, 403])
})

test('max may be a function of the request, and 0 rejects all', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const max = async ({ url }: { url: string }) => Number(url.slice(1))
  const statuses = await start(store, { max }, (app) => app.get('/:max', async () => 'root'))
  expect(await statuses('GET /0', 'GET /1', 'GET /1', 'GET /2', 'GET /2', 'GET /2')).toEqual([429, 200, 429, 200, 200, 429])
})

test.each(['continueExceeding', 'exponentialBackoff'])('%s is an error at registration', async (option) => {
  const store = fastifyRateLimitStore(memoryStore())
  const expected = `Option "${option}" is true. Use false with this store.`
  await expect(start(store, { max: 1, [option]: true }, () => {})).rejects.toThrow(expected)
  const route = (app: FastifyInstance) => app.get('/', { config: { rateLimit: { [option]: true } } }, async () => 'root')
  await expect(start(store, { max: 1 }, route)).rejects.toThrow(expected)
})

test('a store counts for the next server after its throttler was closed', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  for (let server = 1; server <= 2; server++) {
    const statuses = await start(store, { max: 1 }, (app) => app.get('/', async () => 'root'))
    expect(await statuses('GET /', 'GET /')).toEqual([200, 429])
    await store.throttler.close()
  }
})

test('a max that is a string counts as its number', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const statuses = await start(store, { max: async () => '2' }, (app) => app.get('/', async () => 'root'))
  expect(await statuses('GET /', 'GET /', 'GET /')).toEqual([200, 200, 429])
  expect(store.throttler.policies.map(({ limit }) => limit)).toEqual([2])
})

test('a client can not use up the limit of another route, whatever its key is', async () => {
  const store = fastifyRateLimitStore(memoryStore())
  const keyGenerator = ({ headers }: { headers: Record<string, unknown> }) => String(headers['x-key'])
  const app = Fastify()
  onTestFinished(() => app.close())
  onTestFinished(() => store.throttler.close())
  await app.register(rateLimit, { timeWindow: HOUR, max: 1, store, keyGenerator: keyGenerator as never })
  for (const path of ['/a', '/a-b']) app.get(path, { config: { rateLimit: { max: 1 } } }, async () => path)
  for (const [url, key] of [
    ['/a', 'b-ann'],
    ['/a-b', 'ann'],
  ]) {
    expect((await app.inject({ url: url as string, headers: { 'x-key': key } })).statusCode).toBe(200)
  }
})

test('after the throttler is closed, requests fail, or pass with skipOnError', async () => {
  for (const [skipOnError, status] of [
    [false, 500],
    [true, 200],
  ] as const) {
    const store = fastifyRateLimitStore(memoryStore())
    const statuses = await start(store, { max: 1, skipOnError }, (app) => app.get('/', async () => 'root'))
    await store.throttler.close()
    expect(await statuses('GET /', 'GET /')).toEqual([status, status])
  }
})
