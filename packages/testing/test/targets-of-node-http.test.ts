import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parse } from 'node:url'
import type { Decision } from '@weir/core'
import { createGuard, nodeReader } from '@weir/core/adapter'
import { expect, test } from 'vitest'
import { restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '../src/adapter-contract/spellings.ts'
import { manualClock } from '../src/time/manual-clock.ts'

const ROUTES: readonly SpelledRoute[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/a\\!b/c', path: '/a!b/c' },
  { match: '/it%27s%20me', path: '/it%27s%20me' },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/files/*rest', path: '/files/a/b' },
]

const decoded = (path: string): string => {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
const withoutQuery = (url: string): string => url.split('?')[0] as string

/** The ways in which programs without a framework get a path from `request.url`. */
const ROUTERS: Readonly<Record<string, (url: string) => string>> = {
  'the text before the query': withoutQuery,
  'the same, in lower case and without doubled slashes': (url) => withoutQuery(url).toLowerCase().replace(/\/+/g, '/'),
  'the same, decoded': (url) => decoded(withoutQuery(url)),
  'decoded first': (url) => withoutQuery(decoded(url)),
  'decoded and in lower case': (url) => decoded(withoutQuery(url)).toLowerCase(),
  'cut at a semicolon': (url) => withoutQuery(url).split(';')[0] as string,
  'url.parse': (url) => parse(url).pathname ?? '/',
  'new URL(url, base)': (url) => new URL(url, 'http://host').pathname,
  'new URL(base + url)': (url) => new URL(`http://host${url}`).pathname,
  'new URL, decoded': (url) => decoded(new URL(url, 'http://host').pathname),
  'new URL, cut at a semicolon': (url) => new URL(url, 'http://host').pathname.split(';')[0] as string,
}

test.each(Object.keys(ROUTERS))(
  'node:http: a request that reaches a handler is counted by the policy of its route, however its target is spelled: %s',
  async (name) => {
    const router = ROUTERS[name] as (url: string) => string
    const handlers: readonly (readonly [handler: string, matches: RegExp])[] = [
      ['/', /^\/$/],
      ['/login', /^\/login\/?$/],
      ['/a\\!b/c', /^\/a!b\/c$/],
      ['/it%27s%20me', /^\/it('|%27)s( |%20)me$/],
      ['/x/:id', /^\/x\/[^/]+$/],
      ['/files/*rest', /^\/files\//],
    ]
    const guard = createGuard<IncomingMessage, []>({ policies: spellingPolicies(ROUTES), clock: manualClock() }, nodeReader)
    const server = createServer((request, response) => {
      restoreTarget(request)
      const decision = guard.check(request) as Decision | undefined
      let body = '{}'
      try {
        const path = router(String(request.url))
        const found = handlers.find(([, matches]) => matches.test(path))
        if (found !== undefined) body = JSON.stringify(spelledAnswer(found[0], decision))
      } catch {
        // The text is no URL.
      }
      response.setHeader('Content-Length', Buffer.byteLength(body)).end(body)
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    try {
      const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES, count: 600 })
      expect(oddly).toBeGreaterThan(20)
    } finally {
      server.closeAllConnections()
      server.close()
      await guard.throttler.close()
    }
  },
  30_000,
)
