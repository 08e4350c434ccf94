import { createThrottler, fixedWindow, memoryStore } from '@weir/core'
import { type ThrottleMiddleware, throttle } from '@weir/express'
import { redisStore } from '@weir/redis'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { type Options, rateLimit, type Store } from 'express-rate-limit'
import { RedisStore } from 'rate-limit-redis'
import { onTestFinished } from 'vitest'
import { as, type Case, field, times } from './beside.ts'
import { client } from './redis.ts'

/** A program behind a limiter. `/fail` answers 500. */
function app(limiter: RequestHandler, onError?: ErrorRequestHandler): Express {
  const made = express().set('trust proxy', 1).use(limiter)
  made.get('/fail', (_req, res) => void res.status(500).send('failed'))
  made.get('/odd', (_req, res) => void res.status(203).send('odd'))
  made.get('/{*rest}', (_req, res) => void res.send('hello'))
  return onError === undefined ? made : made.use(onError)
}

const peer = (options: Partial<Options>) => rateLimit({ windowMs: 900_000, limit: 2, validate: false, ...options })
const BASE = { key: 'ip', limit: 2, interval: '15m' } as const
/** Windows from a key's first request, like the peer's. */
const FIRST = { ...BASE, coordination: 'local', algorithm: fixedWindow({ start: 'first-request' }) } as const

const TWO_OF_THREE = [200, 200, 429]
/** A store that is down: nothing listens on its port. */
const awayStore = () => redisStore('redis://127.0.0.1:1')
const brokenStore = (): Store => ({
  increment: () => Promise.reject(new Error('away')),
  decrement: () => {},
  resetKey: () => {},
})
/** Closes a middleware's throttler with the test. */
function closed(limiter: ThrottleMiddleware): ThrottleMiddleware {
  onTestFinished(() => limiter.throttler.close())
  return limiter
}

/** Waits until a process uses the store's clock, because the clock of the tests is fixed, a few months away from it. */
async function synced({ throttler }: ThrottleMiddleware): Promise<void> {
  throttler.start()
  for (const end = performance.now() + 20_000; throttler.state !== 'synced'; ) {
    if (performance.now() > end) throw new Error('Redis does not answer.')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A program with a limiter for `/0`, another one for `/1` and so on. */
function byPath(limiters: readonly RequestHandler[]): Express {
  return app((req, res, next) => limiters[Number(req.path.slice(1))]?.(req, res, next))
}

/** The peer's store in Redis. */
const peerStore = (prefix: string) =>
  new RedisStore({ prefix, sendCommand: (command, ...args) => client().call(command, ...args) as Promise<string> })

/** Waits for a log entry, and answers `/logged` then. */
class Log {
  #told: (() => void) | undefined
  readonly #logged = new Promise<void>((resolve) => {
    this.#told = resolve
  })
  readonly error = (): void => this.#told?.()
  readonly warn = (): void => this.#told?.()

  app(limiter: RequestHandler): Express {
    const made = express()
    made.get('/logged', async (_req, res) => {
      await this.#logged
      res.send('logged')
    })
    return made.use(limiter).get('/', (_req, res) => void res.send('hello'))
  }
}

const from = (address: string) => as('x-forwarded-for', address)

/** The same function for the peer and for Weir. */
const user: RequestHandler extends (req: infer Req, ...rest: never[]) => unknown ? (req: Req) => string : never = (req) =>
  String(req.headers['x-user'])

export const CASES: readonly Case[] = [
  {
    options: ['windowMs', 'limit'],
    peer: () => app(peer({})),
    weir: () => app(throttle({ ...BASE, store: memoryStore() })),
    requests: times(3),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['max'],
    peer: () => app(rateLimit({ windowMs: 900_000, max: 1, validate: false })),
    weir: () => app(throttle({ ...BASE, limit: 1 })),
    requests: times(2),
    statuses: [200, 429],
  },
  {
    options: ['limit: a function'],
    peer: () => app(peer({ keyGenerator: user, limit: async (req) => (user(req) === 'ann' ? 3 : 1) })),
    weir: () => app(throttle({ ...BASE, key: user, limit: async (req) => (user(req) === 'ann' ? 3 : 1), fallbackLimit: 1 })),
    requests: [...times(4, as('x-user', 'ann')), ...times(2, as('x-user', 'bob'))],
    statuses: [200, 200, 200, 429, 200, 429],
  },
  {
    options: ['limit: 0'],
    peer: () => app(peer({ limit: 0 })),
    weir: () => app(throttle({ ...BASE, limit: () => 0, fallbackLimit: 1 })),
    requests: times(2),
    statuses: [429, 429],
  },
  {
    options: ['message', 'statusCode'],
    peer: () => app(peer({ message: 'slow down', statusCode: 503 })),
    weir: () => app(throttle({ ...BASE, message: 'slow down', statusCode: 503 })),
    requests: times(3),
    same: ({ body }) => body,
    statuses: [200, 200, 503],
  },
  {
    options: ['message: an object'],
    peer: () => app(peer({ message: { error: 'slow down' } })),
    weir: () => app(throttle({ ...BASE, message: { error: 'slow down' } })),
    requests: times(3),
    same: ({ body }) => body,
    statuses: TWO_OF_THREE,
  },
  {
    options: ['message: a function'],
    peer: () => app(peer({ message: async (req: { path: string }) => `not ${req.path}` })),
    weir: () => app(throttle({ ...BASE, message: async (req) => `not ${req.path}` })),
    requests: times(3, { path: '/a' }),
    same: ({ body }) => body,
    statuses: TWO_OF_THREE,
  },
  {
    options: ['handler'],
    peer: () => app(peer({ handler: (req, res, _next, options) => void res.status(options.statusCode).json({ path: req.path }) })),
    weir: () => app(throttle({ ...BASE, handler: (req, res) => void res.json({ path: req.path }) })),
    requests: times(3, { path: '/a' }),
    same: ({ body }) => body,
    statuses: TWO_OF_THREE,
  },
  {
    options: ['handler: next(error)'],
    peer: () =>
      app(
        peer({ handler: (_req, _res, next) => next(new Error('too many')) }),
        (_error, _req, res, _next) => void res.status(418).send('mine'),
      ),
    weir: () => app(throttle({ ...BASE, throwOnReject: true }), (_error, _req, res, _next) => void res.status(418).send('mine')),
    requests: times(3),
    same: ({ body }) => body,
    statuses: [200, 200, 418],
  },
  {
    options: ['standardHeaders'],
    peer: () => app(peer({ standardHeaders: 'draft-7', legacyHeaders: false })),
    weir: () => app(throttle({ ...FIRST, headers: 'draft-7' })),
    requests: times(3),
    same: field('RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'Retry-After'),
    statuses: TWO_OF_THREE,
  },
  {
    options: ["standardHeaders: 'draft-6'"],
    peer: () => app(peer({ standardHeaders: true, legacyHeaders: false })),
    weir: () => app(throttle({ ...FIRST, headers: 'draft-6' })),
    requests: times(3),
    same: field('RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'Retry-After'),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['legacyHeaders', 'headers'],
    peer: () => app(peer({ legacyHeaders: true, standardHeaders: false })),
    weir: () => app(throttle({ ...FIRST, headers: 'legacy-unix' })),
    requests: times(3),
    same: field('X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Limit'),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['standardHeaders, legacyHeaders: false'],
    peer: () => app(peer({ legacyHeaders: false, standardHeaders: false })),
    weir: () => app(throttle({ ...BASE, headers: false, sendRetryAfter: false })),
    requests: times(3),
    same: field('X-RateLimit-Limit', 'RateLimit-Limit', 'RateLimit', 'RateLimit-Policy', 'Retry-After'),
    statuses: TWO_OF_THREE,
  },
  {
    options: ['identifier'],
    peer: () => app(peer({ standardHeaders: 'draft-8', identifier: 'api' })),
    weir: () => app(throttle({ ...BASE, name: 'api' })),
    requests: times(2),
    // Compares name, quota and window, because the peer adds a partition.
    same: ({ headers }) =>
      /^"api"; ?q=2; ?w=900/.test(String(headers['ratelimit-policy'])) && /^"api"; ?r=(\d)/.exec(String(headers['ratelimit']))?.[1],
    statuses: [200, 200],
  },
  {
    options: ['skipFailedRequests'],
    peer: () => app(peer({ skipFailedRequests: true })),
    weir: () => app(throttle({ ...BASE, skipFailedRequests: true })),
    requests: [...times(4, { path: '/fail' }), ...times(3)],
    statuses: [500, 500, 500, 500, ...TWO_OF_THREE],
  },
  {
    options: ['skipSuccessfulRequests'],
    peer: () => app(peer({ skipSuccessfulRequests: true })),
    weir: () => app(throttle({ ...BASE, skipSuccessfulRequests: true })),
    requests: [...times(4), ...times(3, { path: '/fail' })],
    statuses: [200, 200, 200, 200, 500, 500, 429],
  },
  {
    options: ['requestWasSuccessful'],
    peer: () => app(peer({ skipSuccessfulRequests: true, requestWasSuccessful: async (_req, res) => res.statusCode === 203 })),
    weir: () => app(throttle({ ...BASE, skipSuccessfulRequests: true, requestWasSuccessful: async (_req, res) => res.statusCode === 203 })),
    requests: [...times(4, { path: '/odd' }), ...times(3)],
    statuses: [203, 203, 203, 203, ...TWO_OF_THREE],
  },
  {
    options: ['skip'],
    peer: () => app(peer({ skip: async (req) => req.path === '/health' })),
    weir: () => app(throttle({ ...BASE, skip: async (req) => req.path === '/health' })),
    requests: [...times(4, { path: '/health' }), ...times(3)],
    statuses: [200, 200, 200, 200, ...TWO_OF_THREE],
  },
  {
    options: ['keyGenerator'],
    peer: () => app(peer({ keyGenerator: async (req) => user(req) })),
    weir: () => app(throttle({ ...BASE, key: async (req) => user(req) })),
    requests: [...times(3, as('x-user', 'ann')), ...times(3, as('x-user', 'bob'))],
    statuses: [...TWO_OF_THREE, ...TWO_OF_THREE],
  },
  {
    options: ['ipv6Subnet'],
    peer: () => app(peer({ limit: 1, ipv6Subnet: 48 })),
    weir: () => app(throttle({ ...BASE, limit: 1, ipv6Subnet: 48 })),
    requests: [from('2001:db8:1:1::1'), from('2001:db8:1:2::1'), from('2001:db8:2:1::1')],
    statuses: [200, 429, 200],
  },
  {
    options: ['ipv6Subnet: false'],
    peer: () => app(peer({ limit: 1, ipv6Subnet: false })),
    weir: () => app(throttle({ ...BASE, limit: 1, ipv6Subnet: 128 })),
    requests: [from('2001:db8::1'), from('2001:db8::2'), from('2001:db8::1')],
    statuses: [200, 200, 429],
  },
  {
    options: ['passOnStoreError', 'logger'],
    peer: () => {
      const log = new Log()
      return log.app(peer({ store: brokenStore(), passOnStoreError: true, logger: log }))
    },
    weir: () => {
      const log = new Log()
      return log.app(closed(throttle({ ...BASE, name: 'passing', store: awayStore(), failMode: 'open', logger: log })))
    },
    requests: [...times(4), { path: '/logged' }],
    same: ({ body }) => body,
    statuses: [200, 200, 200, 200, 200],
  },
  {
    options: ['store'],
    // Two limiters of one program, each with its own store.
    peer: () => byPath([0, 1].map(() => peer({ store: peerStore('peer:') }))),
    weir: async () => {
      const limiters = [0, 1].map(() =>
        closed(
          throttle({ ...BASE, coordination: 'central', storeTimeout: '10s', store: redisStore(client(), { namespace: 'migration' }) }),
        ),
      )
      for (const limiter of limiters) await synced(limiter)
      return byPath(limiters)
    },
    requests: [{ path: '/0' }, { path: '/1' }, { path: '/0' }, { path: '/1' }],
    statuses: [200, 200, 429, 429],
  },
  {
    options: ['resetKey(key)'],
    peer: () => {
      const limiter = peer({ keyGenerator: user })
      const made = express()
      made.get('/reset', (req, res) => {
        limiter.resetKey(user(req))
        res.send('reset')
      })
      return made.use(limiter).get('/', (_req, res) => void res.send('hello'))
    },
    weir: () => {
      const limiter = throttle({ ...BASE, key: user })
      const made = express()
      made.get('/reset', (req, res) => {
        limiter.throttler.reset(user(req))
        res.send('reset')
      })
      return made.use(limiter).get('/', (_req, res) => void res.send('hello'))
    },
    requests: [...times(3, as('x-user', 'ann')), as('x-user', 'ann', '/reset'), ...times(3, as('x-user', 'ann'))],
    statuses: [...TWO_OF_THREE, 200, ...TWO_OF_THREE],
  },
  {
    options: ['getKey(key)'],
    peer: () => {
      const limiter = peer({ keyGenerator: user })
      const made = express()
      made.get('/used', async (req, res) => void res.json((await limiter.getKey(user(req)))?.totalHits))
      return made.use(limiter).get('/', (_req, res) => void res.send('hello'))
    },
    weir: () => {
      const throttler = createThrottler({ policies: [{ ...BASE, key: user }] })
      const made = express()
      made.get('/used', async (req, res) => void res.json((await throttler.usage(user(req)))[0]?.used))
      return made.use(throttle(throttler)).get('/', (_req, res) => void res.send('hello'))
    },
    requests: [as('x-user', 'ann'), as('x-user', 'ann', '/used')],
    same: ({ body }) => body,
    statuses: [200, 200],
  },
]

export const REDIS_CASES: readonly Case[] = [
  {
    options: ['sendCommand', 'prefix'],
    // Two limiters with one prefix, and one with another.
    peer: () => byPath(['shared:', 'shared:', 'other:'].map((prefix) => peer({ store: peerStore(prefix) }))),
    weir: async () => {
      const limiters = ['shared', 'shared', 'other'].map((namespace) =>
        closed(throttle({ ...BASE, coordination: 'central', storeTimeout: '10s', store: redisStore(client(), { namespace }) })),
      )
      for (const limiter of limiters) await synced(limiter)
      return byPath(limiters)
    },
    requests: [{ path: '/0' }, { path: '/1' }, { path: '/1' }, { path: '/2' }, { path: '/0' }],
    statuses: [200, 200, 429, 200, 429],
  },
]
