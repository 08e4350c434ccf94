import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import type { FastifyRequest, FastifyServerOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

/** Routes of Fastify and the patterns of their policies. */
const ROUTES: readonly (SpelledRoute & { readonly url: string })[] = [
  { url: '/', match: '/', path: '/' },
  { url: '/login', match: '/login', path: '/login' },
  { url: '/a!b/c', match: '/a\\!b/c', path: '/a!b/c' },
  { url: "/it's(me)[x]", match: "/it's\\(me\\)\\[x\\]", path: "/it's(me)[x]" },
  { url: '/a b', match: '/a%20b', path: '/a%20b' },
  { url: '/café', match: '/caf%C3%A9', path: '/caf%c3%a9' },
  { url: '/x/:id', match: '/x/:user', path: '/x/jane' },
  { url: '/y/:id/z', match: '/y/:id/z', path: '/y/1/z' },
  { url: '/n/:id(^\\d+$)', match: '/n/:id', path: '/n/42' },
  { url: '/at/:hour(^\\d+)h:minute(^\\d+)m', match: '/at/:"hour"h:"minute"m', path: '/at/10h20m' },
  { url: '/from/:a-:b', match: '/from/:a-:b', path: '/from/x-y' },
  { url: '/opt/:x?', match: '/opt{/:x}', path: '/opt/1' },
  { url: '/files/*', match: '/files/*rest', path: '/files/a/b' },
  { url: '/c::d', match: '/c\\:d', path: '/c:d' },
  { url: '/v1/login', match: '/v1/login', path: '/v1/login' },
  { url: '/v1/:id/orders', match: '/v1/*rest', path: '/v1/7/orders' },
]

const OPTIONS: readonly FastifyServerOptions[] = [
  {},
  { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, useSemicolonDelimiter: true },
  { rewriteUrl: (request: IncomingMessage) => String(request.url).replace(/^\/old/, '') },
]

describe.each(FRAMEWORKS)('%s', (_name, fastify) => {
  test.each(OPTIONS)(
    'a request that reaches a handler is counted by the policy of its route, however its target is spelled: %j',
    async (options) => {
      const serverFactory = (handler: (req: IncomingMessage, res: ServerResponse) => void) =>
        createServer((req, res) => {
          restoreTarget(req)
          handler(req, res)
        })
      const app = fastify({ ...options, serverFactory, exposeHeadRoutes: false })
      await app.register(weir, { policies: spellingPolicies(ROUTES), clock: manualClock() })
      for (const { url, match } of ROUTES.filter(({ url }) => !url.startsWith('/v1'))) {
        app.get(url, (request: FastifyRequest) => spelledAnswer(match, request.throttle))
      }
      await app.register(
        async (child) => {
          child.get('/login', (request) => spelledAnswer('/v1/login', request.throttle))
          child.get('/:id/orders', (request) => spelledAnswer('/v1/*rest', request.throttle))
        },
        { prefix: '/v1' },
      )
      await app.listen({ port: 0, host: '127.0.0.1' })
      try {
        const routes = ROUTES.flatMap((route) => [route, { ...route, path: `/old${route.path}` }])
        const { port } = app.server.address() as AddressInfo
        const { oddly } = await trySpellings({ port, routes: options.rewriteUrl ? routes : ROUTES, count: 1500 })
        expect(oddly).toBeGreaterThan(50)
      } finally {
        app.server.closeAllConnections()
        await app.close()
      }
    },
    30_000,
  )
})
