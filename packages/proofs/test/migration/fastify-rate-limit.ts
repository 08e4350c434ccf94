import type { Server } from 'node:http'
import rateLimit, { type RateLimitPluginOptions } from '@fastify/rate-limit'
import { escalating } from '@weir/core'
import weir, { addresses, paths } from '@weir/fastify'
import { redisStore } from '@weir/redis'
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { as, type Case, field, times } from './beside.ts'
import { client } from './redis.ts'

/** A program with a plugin, and the routes of the cases. */
async function app(plugin: (app: FastifyInstance) => Promise<unknown>, routes?: (app: FastifyInstance) => void): Promise<Server> {
  const made = Fastify({ trustProxy: true })
  await plugin(made)
  if (routes === undefined) {
    made.get('/', async () => 'hello')
    made.get('/other', async () => 'hello')
  } else routes(made)
  await made.ready()
  return made.server
}

const user = (request: FastifyRequest): string => String(request.headers['x-user'])
const peer = (options: RateLimitPluginOptions, routes?: (app: FastifyInstance) => void) =>
  app((made) => made.register(rateLimit, { max: 2, timeWindow: '15 minutes', ...options }) as unknown as Promise<unknown>, routes)
const mine = (options: Parameters<typeof weir>[1] | object, routes?: (app: FastifyInstance) => void) =>
  app(
    (made) => made.register(weir, { key: 'ip', limit: 2, interval: '15 minutes', ...options } as never) as unknown as Promise<unknown>,
    routes,
  )

/** One store for all routes. */
class OneStore {
  readonly #counts = new Map<string, number>()

  incr(key: string, callback: (error: null, result: { current: number; ttl: number }) => void): void {
    const current = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, current)
    callback(null, { current, ttl: 900_000 })
  }

  child(): this {
    return this
  }
}

const TWO_OF_THREE = [200, 200, 429]
const from = (address: string) => as('x-forwarded-for', address)

export const CASES: readonly Case[] = [
  {
    options: ['max', 'timeWindow'],
    peer: () => peer({}),
    weir: () => mine({}),
    requests: times(3),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['max: a function'],
    peer: () => peer({ keyGenerator: user, max: async (request) => (user(request) === 'ann' ? 3 : 1) }),
    weir: () => mine({ key: user, limit: async (request: FastifyRequest) => (user(request) === 'ann' ? 3 : 1), fallbackLimit: 1 }),
    requests: [...times(4, as('x-user', 'ann')), ...times(2, as('x-user', 'bob'))],
    statuses: [200, 200, 200, 429, 200, 429],
  },
  {
    options: ['timeWindow: a function'],
    peer: () => peer({ keyGenerator: user, enableDraftSpec: true, timeWindow: (request) => (user(request) === 'ann' ? 60_000 : 600_000) }),
    weir: () =>
      mine({
        key: user,
        limit: undefined,
        plans: { minute: { limit: 2, interval: '1m' }, ten: { limit: 2, interval: '10m' } },
        plan: (request: FastifyRequest) => (user(request) === 'ann' ? 'minute' : 'ten'),
      }),
    requests: [...times(3, as('x-user', 'ann')), ...times(3, as('x-user', 'bob'))],
    statuses: [...TWO_OF_THREE, ...TWO_OF_THREE],
  },
  {
    options: ['global'],
    peer: () =>
      peer({ global: false }, (made) => {
        made.get('/', async () => 'free')
        made.get('/other', { config: { rateLimit: { max: 1, timeWindow: '15 minutes' } } }, async () => 'limited')
      }),
    weir: () =>
      mine({ limit: 1, match: paths('GET /other') }, (made) => {
        made.get('/', async () => 'free')
        made.get('/other', async () => 'limited')
      }),
    requests: [...times(3), ...times(2, { path: '/other' })],
    statuses: [200, 200, 200, 200, 429],
  },
  {
    options: ['rateLimit'],
    peer: () =>
      peer({}, (made) => {
        made.get('/', { config: { rateLimit: false } }, async () => 'free')
        made.get('/other', { config: { rateLimit: { max: 1, timeWindow: '15 minutes' } } }, async () => 'limited')
      }),
    weir: () =>
      mine({}, (made) => {
        made.get('/', { config: { throttle: false } }, async () => 'free')
        made.get('/other', { config: { throttle: { key: 'ip', limit: 1, interval: '15 minutes' } } }, async () => 'limited')
      }),
    requests: [...times(3), ...times(2, { path: '/other' })],
    statuses: [200, 200, 200, 200, 429],
  },
  {
    options: ['hook', 'keyGenerator'],
    peer: () =>
      app(async (made) => {
        made.addHook('preValidation', async (request) => {
          request.headers['x-user'] = 'known'
        })
        await made.register(rateLimit, {
          max: 2,
          timeWindow: '15 minutes',
          hook: 'preHandler',
          keyGenerator: async (request) => user(request),
        })
      }),
    weir: () =>
      app(async (made) => {
        made.addHook('preValidation', async (request) => {
          request.headers['x-user'] = 'known'
        })
        await made.register(weir, {
          limit: 2,
          interval: '15 minutes',
          hook: 'preHandler',
          key: async (request: FastifyRequest) => user(request),
        })
      }),
    requests: [as('x-user', 'a'), as('x-user', 'b'), as('x-user', 'c')],
    statuses: TWO_OF_THREE,
  },
  {
    options: ['allowList'],
    peer: () => peer({ allowList: ['10.0.0.1'] }),
    weir: () => mine({ allow: addresses('10.0.0.1') }),
    requests: [...times(3, from('10.0.0.1')), ...times(3, from('10.0.0.2'))],
    statuses: [200, 200, 200, ...TWO_OF_THREE],
  },
  {
    options: ['allowList: a function'],
    peer: () => peer({ allowList: async (request) => user(request) === 'root' }),
    weir: () => mine({ allow: async (request: FastifyRequest) => user(request) === 'root' }),
    requests: times(4, as('x-user', 'root')),
    statuses: [200, 200, 200, 200],
  },
  {
    options: ['skipOnError'],
    peer: () =>
      peer({
        skipOnError: true,
        store: class {
          incr(_key: string, callback: (error: Error | null) => void) {
            callback(new Error('away'))
          }
          child() {
            return this
          }
        } as never,
      }),
    weir: () => mine({ store: redisStore('redis://127.0.0.1:1', { namespace: 'fastify' }), failMode: 'open' }),
    requests: times(4),
    statuses: [200, 200, 200, 200],
  },
  {
    options: ['redis', 'nameSpace'],
    peer: () => peer({ redis: client(), nameSpace: 'peer-' }),
    weir: () => mine({ store: redisStore(client(), { namespace: 'fastify' }) }),
    requests: [{ path: '/' }, { path: '/other' }, { path: '/' }],
    statuses: TWO_OF_THREE,
  },
  {
    options: ['groupId'],
    // The peer's own stores count each route separately anyway, so the case needs another store.
    peer: () =>
      peer({ global: false, store: OneStore as never }, (made) => {
        const config = { rateLimit: { max: 2, timeWindow: '15 minutes', groupId: 'both' } }
        made.get('/', { config }, async () => 'a')
        made.get('/other', { config }, async () => 'b')
      }),
    weir: () => mine({ match: paths('GET /', 'GET /other') }),
    requests: [{ path: '/' }, { path: '/other' }, { path: '/' }, { path: '/other' }],
    statuses: [200, 200, 429, 429],
  },
  {
    options: ['errorResponseBuilder'],
    peer: () => peer({ errorResponseBuilder: (_request, { max }) => ({ statusCode: 429, error: `${max} are enough` }) }),
    weir: () =>
      mine({ message: (_request: FastifyRequest, { limit }: { limit: number }) => ({ statusCode: 429, error: `${limit} are enough` }) }),
    requests: times(3),
    same: ({ status, body }) => (status === 429 ? body : ''),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['enableDraftSpec'],
    peer: () => peer({ enableDraftSpec: true }),
    weir: () => mine({ headers: 'draft-6' }),
    requests: times(2),
    same: field('RateLimit-Limit', 'RateLimit-Remaining', 'X-RateLimit-Limit'),
    statuses: [200, 200],
  },
  {
    options: ['addHeaders', 'addHeadersOnExceeding'],
    peer: () => {
      const none = { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false }
      return peer({ addHeaders: { ...none, 'retry-after': false }, addHeadersOnExceeding: none })
    },
    weir: () => mine({ headers: false, sendRetryAfter: false }),
    requests: times(3),
    same: field('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'RateLimit', 'Retry-After'),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['onExceeded'],
    peer: () => {
      const told: string[] = []
      return peer({ onExceeded: (request) => told.push(request.url), allowList: ({ url }) => url === '/told' }, (made) => {
        made.get('/', async () => 'hello')
        made.get('/told', async () => told)
      })
    },
    weir: () => {
      const told: string[] = []
      return mine(
        { onRejected: (request: FastifyRequest) => told.push(request.url), skip: ({ url }: FastifyRequest) => url === '/told' },
        (made) => {
          made.get('/', async () => 'hello')
          made.get('/told', async () => told)
        },
      )
    },
    requests: [...times(4), { path: '/told' }],
    same: ({ status, body }) => (status === 200 ? body : ''),
    statuses: [200, 200, 429, 429, 200],
  },
  {
    options: ['ipv6Subnet'],
    peer: () => peer({ max: 1, ipv6Subnet: 48 }),
    weir: () => mine({ limit: 1, ipv6Subnet: 48 }),
    requests: [from('2001:db8:1:1::1'), from('2001:db8:1:2::1'), from('2001:db8:2:1::1')],
    statuses: [200, 429, 200],
  },
  {
    options: ['rateLimit()'],
    peer: () =>
      app(async (made) => {
        await made.register(rateLimit, { max: 2, timeWindow: '15 minutes', global: false })
        made.setNotFoundHandler({ preHandler: made.rateLimit() }, async (_request, reply) => reply.code(404).send('none'))
      }),
    weir: () =>
      app(async (made) => {
        await made.register(weir, { name: 'rest', key: 'ip', limit: 2, interval: '15 minutes', match: () => false })
        const limit = made.throttle({ name: 'none', key: 'ip', limit: 2, interval: '15 minutes' })
        made.setNotFoundHandler({ preHandler: limit }, async (_request, reply) => reply.code(404).send('none'))
      }),
    requests: [...times(3, { path: '/nowhere' }), { path: '/' }],
    statuses: [404, 404, 429, 200],
  },
  {
    options: ['createRateLimit()'],
    peer: () =>
      app(
        async (made) => void (await made.register(rateLimit, { max: 1, timeWindow: '15 minutes', global: false })),
        (made) => {
          const check = made.createRateLimit({ max: 1, timeWindow: '15 minutes' })
          made.get('/', async (request) => {
            const answer = await check(request)
            return { rejected: !answer.isAllowed && answer.isExceeded }
          })
        },
      ),
    weir: () =>
      app(
        async (made) => void (await made.register(weir, { name: 'rest', key: 'ip', limit: 1, interval: '15 minutes', match: () => false })),
        (made) => {
          const limit = made.throttle({ name: 'own', key: 'ip', limit: 1, interval: '15 minutes' })
          made.get('/', async (request) => ({ rejected: (await limit.check(request))?.allowed === false }))
        },
      ),
    requests: times(3),
    same: ({ body }) => body,
    statuses: [200, 200, 200],
  },
  {
    options: ['checkRateLimit: increment'],
    peer: () =>
      app(
        async (made) => void (await made.register(rateLimit, { max: 1, timeWindow: '15 minutes', global: false })),
        (made) => {
          const check = made.createRateLimit({ max: 1, timeWindow: '15 minutes' })
          made.get('/', async (request) => {
            await check(request, { increment: false })
            const answer = await check(request)
            return { rejected: !answer.isAllowed && answer.isExceeded }
          })
        },
      ),
    weir: () =>
      app(
        async (made) => void (await made.register(weir, { name: 'rest', key: 'ip', limit: 1, interval: '15 minutes', match: () => false })),
        (made) => {
          const limit = made.throttle({ name: 'own', key: 'ip', limit: 1, interval: '15 minutes' })
          made.get('/', async (request) => {
            await limit.peek(request)
            return { rejected: (await limit.check(request))?.allowed === false }
          })
        },
      ),
    requests: times(3),
    same: ({ body }) => body,
    statuses: [200, 200, 200],
  },
  {
    options: ['continueExceeding', 'retry-after'],
    peer: () => peer({ continueExceeding: true, max: 1, timeWindow: 60_000 }),
    weir: () => mine({ limit: 1, interval: '1m', cooldown: '1m' }),
    requests: times(3),
    same: ({ headers }) => Number(headers['retry-after'] ?? 60) > 55,
    statuses: [200, 429, 429],
  },
  {
    options: ['exponentialBackoff'],
    peer: () => peer({ exponentialBackoff: true, max: 1, timeWindow: 10_000 }),
    weir: () => mine({ limit: 1, interval: '10s', cooldown: escalating({ base: '20s', max: '1h' }) }),
    requests: times(2),
    same: ({ headers }) => Number(headers['retry-after'] ?? 0) <= 20,
    statuses: [200, 429],
  },
]
