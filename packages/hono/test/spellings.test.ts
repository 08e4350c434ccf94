import type { AddressInfo } from 'node:net'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import { type Context, Hono, type Next } from 'hono'
import { expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { NEWEST, serve } from './frameworks.ts'

/** Paths and the patterns that their policies match. */
const ROUTES: readonly (SpelledRoute & { readonly hono?: string })[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/a\\!b/c', path: '/a!b/c', hono: '/a!b/c' },
  { match: "/it's", path: "/it's" },
  { match: '/it%27s%20me', path: '/it%27s%20me', hono: '/it%27s me' },
  { match: '/é', path: '/\xe9', keys: 3 },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/y/:id', path: '/y/17', hono: '/y/:id{[0-9]+}' },
  { match: '/z/*rest', path: '/z/a/b.png', hono: '/z/:rest{.+}' },
  { match: '/files/*rest', path: '/files/a/b', hono: '/files/*' },
  { match: '/v1/login', path: '/v1/login' },
  { match: '/v1/:tenant/users', path: '/v1/a/users' },
  { match: '/by/hand', path: '/by/hand' },
]

test('a request that reaches a handler is counted by the policy of its route, however its target is spelled', async () => {
  const app = new Hono()
  app.use(throttle({ policies: spellingPolicies(ROUTES), clock: manualClock() }))
  const reached = (handler: string) => (c: Context) => c.json(spelledAnswer(handler, c.get('throttle')))
  for (const { match, hono = match } of ROUTES.slice(0, 10)) app.get(hono, reached(match))
  const tenants = new Hono()
  tenants.get('/login', reached('/v1/login'))
  tenants.onError((error) => {
    throw error
  })
  const users = new Hono()
  users.get('/users', reached('/v1/:tenant/users'))
  tenants.route('/:tenant', users)
  app.route('/v1', tenants)
  app.use(async (c: Context, next: Next) => (c.req.path === '/by/hand' ? reached('/by/hand')(c) : next()))
  const server = await serve(NEWEST, app, { before: restoreTarget })
  try {
    const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES, count: 2500 })
    expect(oddly).toBeGreaterThan(50)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}, 30_000)
