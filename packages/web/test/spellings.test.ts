import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import { expect, test } from 'vitest'
import { throttle } from '../src/index.ts'

/** Paths and the patterns that their policies match. */
const ROUTES: readonly SpelledRoute[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/a\\!b/c', path: '/a!b/c' },
  { match: "/it's", path: "/it's" },
  { match: '/it%27s%20me', path: '/it%27s%20me' },
  { match: '/é', path: '/\xe9', keys: 3 },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/files/*rest', path: '/files/a/b' },
  { match: '/v1/:tenant/users', path: '/v1/a/users' },
]

/** Ways in which code finds a handler by the URL of a request. */
const READERS: Readonly<Record<string, (path: string) => string>> = {
  'as it is': (path) => path,
  'without doubled slashes': (path) => path.replace(/\/{2,}/g, '/'),
  'without the slash at its end': (path) => path.replace(/(.)\/+$/, '$1'),
  'in lower case': (path) => path.toLowerCase(),
  decoded: (path) => {
    try {
      return decodeURIComponent(path)
    } catch {
      return path
    }
  },
}

/** The `match` of the handler that a path leads to. */
function handlerOf(path: string): string | undefined {
  const found = ROUTES.find((route) => {
    const pattern = decodeURI(new URL(route.path, 'http://a').pathname).replaceAll('%27', "'")
    if (path === pattern || encodeURI(pattern) === path) return true
    if (route.match === '/x/:id') return /^\/x\/[^/]+$/.test(path)
    if (route.match === '/files/*rest') return /^\/files\/.+$/.test(path)
    return route.match === '/v1/:tenant/users' && /^\/v1\/[^/]+\/users$/.test(path)
  })
  return found?.match
}

test.each(Object.entries(READERS))(
  'a request that reaches a handler by its path %s is counted by the policy of this handler',
  async (_how, read) => {
    const limit = throttle({ policies: spellingPolicies(ROUTES), clock: manualClock() })
    const handle = limit((request) => {
      const handler = handlerOf(read(new URL(request.url).pathname))
      if (handler === undefined) return new Response('not found', { status: 404 })
      return Response.json(spelledAnswer(handler, limit.decision(request)))
    })
    const listener = getRequestListener(handle)
    const server = createServer((request: IncomingMessage, response: ServerResponse) => {
      restoreTarget(request)
      void listener(request, response)
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    try {
      const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES, count: 1000 })
      expect(oddly).toBeGreaterThan(20)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  },
  30_000,
)
