import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import type { Context, Middleware, Next } from 'koa'
import { describe, expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ROUTES: readonly SpelledRoute[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/a\\!b/c', path: '/a!b/c' },
  { match: "/it's", path: "/it's" },
  { match: '/it%27s%20me', path: '/it%27s%20me' },
  { match: '/é', path: '/\xe9', keys: 3 },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/from/:a-:b', path: '/from/a%2db-c' },
  { match: '/files/*rest', path: '/files/a/b' },
  { match: '/v1/login', path: '/v1/login' },
  { match: '/v1/:tenant/users', path: '/v1/a/users' },
  { match: '/m/login', path: '/m/login' },
  { match: '/by/hand', path: '/by/hand' },
]

/** Mounts a middleware as koa-mount does. */
function mounted(prefix: string, middleware: Middleware): Middleware {
  return async (ctx, next) => {
    const { path } = ctx
    if (path !== prefix && !path.startsWith(`${prefix}/`)) return next()
    ctx.path = path.slice(prefix.length) || '/'
    await middleware(ctx, async () => {
      ctx.path = path
      await next()
    })
  }
}

describe.each(FRAMEWORKS)('%s', (_name, Framework) => {
  test.each([false, true])(
    'a request that reaches a handler is counted by the policy of its route, however its target is spelled; with the router: %s',
    async (withRouter) => {
      const app = new Framework()
      app.silent = true
      const router = new Router()
      const policies = spellingPolicies(ROUTES)
      app.use(throttle({ policies, clock: manualClock(), ...(withRouter && { router }) }))
      const reached = (handler: string) => (ctx: Context, _next?: Next) => {
        ctx.body = spelledAnswer(handler, ctx.state['throttle'])
      }
      for (const { match } of ROUTES.slice(0, 9)) router.get(match, reached(match))
      const tenants = new Router({ prefix: '/v1' })
      tenants.get('/login', reached('/v1/login'))
      const users = new Router()
      users.get('/users', reached('/v1/:tenant/users'))
      tenants.use('/:tenant', users.routes())
      app.use(router.routes())
      app.use(tenants.routes())
      const inner = new Router()
      inner.get('/login', reached('/m/login'))
      app.use(mounted('/m', inner.routes() as unknown as Middleware))
      app.use((ctx, next) => (ctx.path === '/by/hand' ? reached('/by/hand')(ctx) : next()))
      const handle = app.callback()
      const server = createServer((req, res) => {
        restoreTarget(req)
        void handle(req, res)
      })
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      try {
        const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES, count: 1500 })
        expect(oddly).toBeGreaterThan(50)
      } finally {
        server.closeAllConnections()
        server.close()
      }
    },
    30_000,
  )

  test('a target with white space before its path makes no mount, and so no route key of its own', async () => {
    const app = new Framework()
    const router = new Router()
    app.use(throttle({ limit: 3, interval: '1h', key: 'route', clock: manualClock(), router }))
    router.get('/login', (ctx) => void (ctx.body = 'in'))
    app.use(router.routes())
    app.use(mounted('/m', router.routes() as unknown as Middleware))
    const handle = app.callback()
    const server = createServer((req, res) => {
      restoreTarget(req)
      void handle(req, res)
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const statusOf = async (target: string) => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      return (await fetch(url, { headers: { 'x-target': encodeURIComponent(target) } })).status
    }
    try {
      const statuses: number[] = []
      for (let i = 0; i < 6; i++) statuses.push(await statusOf(`${'\xa0'.repeat(i)}/login`))
      expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
