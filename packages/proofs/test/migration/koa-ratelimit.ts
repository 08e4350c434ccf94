import { throttle } from '@weir/koa'
import Koa, { type Context, type Middleware } from 'koa'
import ratelimit from 'koa-ratelimit'
import { as, type Case, field, times } from './beside.ts'

function app(limiter: Middleware): ReturnType<Koa['callback']> {
  const made = new Koa()
  made.silent = true
  made.use(async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const { status = 500 } = error as { status?: number }
      ctx.status = status
      ctx.body = `thrown ${status}`
    }
  })
  return made
    .use(limiter)
    .use((ctx) => {
      ctx.body = 'hello'
    })
    .callback()
}

type Options = Partial<ratelimit.MiddlewareOptions>
const user = (ctx: Context): string => String(ctx.headers['x-user'])
const peer = (options: Options) => ratelimit({ driver: 'memory', db: new Map(), duration: 60_000, max: 2, id: user, ...options })
const BASE = { key: user, limit: 2, interval: '1m' } as const
const ANN = as('x-user', 'ann')

export const CASES: readonly Case[] = [
  {
    options: ['driver', 'db', 'namespace', 'duration', 'max', 'id'],
    peer: () => app(peer({})),
    weir: () => app(throttle(BASE)),
    requests: [...times(3, ANN), as('x-user', 'bob')],
    statuses: [200, 200, 429, 200],
  },
  {
    options: ['id: false'],
    peer: () => app(peer({ id: (ctx) => (ctx.path === '/health' ? false : user(ctx)) })),
    weir: () => app(throttle({ ...BASE, skip: (ctx) => ctx.path === '/health' })),
    requests: [...times(4, as('x-user', 'ann', '/health')), ...times(3, ANN)],
    statuses: [200, 200, 200, 200, 200, 200, 429],
  },
  {
    options: ['errorMessage'],
    peer: () => app(peer({ errorMessage: 'slow down' })),
    weir: () => app(throttle({ ...BASE, message: 'slow down' })),
    requests: times(3, ANN),
    same: ({ body }) => body,
    statuses: [200, 200, 429],
  },
  {
    options: ['headers'],
    peer: () => app(peer({ headers: { remaining: 'X-RateLimit-Remaining', total: 'X-RateLimit-Limit', reset: 'X-RateLimit-Reset' } })),
    weir: () => app(throttle({ ...BASE, headers: 'legacy-unix' })),
    requests: times(2, ANN),
    same: field('X-RateLimit-Limit', 'X-RateLimit-Remaining'),
    statuses: [200, 200],
  },
  {
    options: ['disableHeader'],
    peer: () => app(peer({ disableHeader: true })),
    weir: () => app(throttle({ ...BASE, headers: false })),
    requests: times(2, ANN),
    same: field('X-RateLimit-Limit', 'RateLimit', 'RateLimit-Policy'),
    statuses: [200, 200],
  },
  {
    options: ['whitelist'],
    peer: () => app(peer({ whitelist: async (ctx) => user(ctx) === 'root' })),
    weir: () => app(throttle({ ...BASE, allow: async (ctx) => user(ctx) === 'root' })),
    requests: times(4, as('x-user', 'root')),
    statuses: [200, 200, 200, 200],
  },
  {
    options: ['blacklist'],
    peer: () => app(peer({ blacklist: async (ctx) => user(ctx) === 'eve' })),
    weir: () => app(throttle({ ...BASE, deny: async (ctx) => user(ctx) === 'eve' })),
    requests: times(2, as('x-user', 'eve')),
    statuses: [403, 403],
  },
  {
    options: ['throw'],
    peer: () => app(peer({ throw: true })),
    weir: () => app(throttle({ ...BASE, throwOnReject: true })),
    requests: times(3, ANN),
    same: ({ body }) => body,
    statuses: [200, 200, 429],
  },
]
