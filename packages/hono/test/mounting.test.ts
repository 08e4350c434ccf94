import type { AddressInfo } from 'node:net'
import type { WeirError } from '@weir/core'
import { ThrottledError } from '@weir/core/adapter'
import { manualClock } from '@weir/testing'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { concurrency, forwardedAddress, type ThrottleMiddleware, type ThrottleOptions, throttle } from '../src/index.ts'
import { NEWEST, serve } from './frameworks.ts'

const ONE = { key: 'route', limit: 1, interval: '1h', clock: manualClock() } as const
const FIVE = { ...ONE, limit: 5 } as const

/** The statuses of requests to paths, one after the other. */
async function statuses(app: Hono, paths: readonly string[], init?: RequestInit): Promise<number[]> {
  const found: number[] = []
  for (const path of paths) found.push((await app.request(path, init)).status)
  return found
}

/** Collects the messages of a middleware's warnings from now on. */
function warningsOf({ throttler }: ThrottleMiddleware): string[] {
  const warnings: string[] = []
  throttler.on('warning', ({ error }) => warnings.push(error.message))
  return warnings
}

test('a misspelled address is recognized', () => {
  const misspelled = { ...ONE, adress: forwardedAddress(1) }
  expect(() => throttle(misspelled as typeof ONE)).toThrow('Unknown option "adress". Did you mean "address"?')
})

test('a handler without a response stays an error, and releases its slot', async () => {
  const limit = throttle({ key: 'route', limit: 1, clock: ONE.clock, algorithm: concurrency() })
  const warnings = warningsOf(limit)
  const app = new Hono()
  app.onError((error, c) => c.text(error.message, 500))
  app.use(limit)
  app.get('/', (() => undefined) as never)
  expect(await statuses(app, ['/', '/'])).toEqual([500, 500])
  expect(warnings).toEqual([])
})

describe('where it stands', () => {
  test('a middleware of a route, a group or a sub-application counts by the whole pattern', async () => {
    const app = new Hono()
    const users = new Hono()
    users.get('/:name', throttle(ONE), (c) => c.text('user'))
    app.route('/v1/users', users)
    app.use('/v2/*', throttle(ONE))
    app.get('/v2/users/:name', (c) => c.text('user'))
    app.get('/v2/orders/:id', (c) => c.text('order'))
    expect(await statuses(app, ['/v1/users/ann', '/v1/users/bob'])).toEqual([200, 429])
    expect(await statuses(app, ['/v2/users/ann', '/v2/users/bob', '/v2/orders/1'])).toEqual([200, 429, 200])
  })

  test('a path without a wildcard is that path alone', async () => {
    const app = new Hono()
    app.use('/one', throttle(ONE))
    app.use('/all/*', throttle(ONE))
    for (const path of ['/one', '/one/x', '/all', '/all/x']) app.get(path, (c) => c.text('hello'))
    expect(await statuses(app, ['/one', '/one', '/one/x', '/one/x'])).toEqual([200, 429, 200, 200])
    expect(await statuses(app, ['/all', '/all', '/all/x', '/all/x'])).toEqual([200, 429, 200, 429])
  })

  test('a middleware that is not called itself says so to the error handler', async () => {
    const app = new Hono()
    app.use(throttle as never)
    app.onError((error, c) => c.text(`${(error as WeirError).code} ${error.message}`, 500))
    const response = await app.request('/')
    expect(response.status).toBe(500)
    expect(await response.text()).toMatch(/^WEIR_INVALID_OPTION .*instead of app\.use\(throttle\)\./)
  })

  test('the handler that answers names the route, not a middleware, and not a handler that matches too', async () => {
    const app = new Hono()
    const keys: string[] = []
    app.use(throttle({ ...FIVE, onRejected: () => {} }))
    app.use(async (c, next) => {
      keys.push(c.get('throttle')?.key ?? '')
      await next()
    })
    app.get('*', async (_c, next) => next())
    app.get('/users/me', (c) => c.text('me'))
    app.get('/users/:name', (c) => c.text('user'))
    app.all('/any/*', (c) => c.text('any'))
    const own = new Hono()
    own.get('/thing/:id', (c) => c.text('thing'))
    own.onError((_error, c) => c.text('own'))
    app.route('/own', own)
    for (const path of ['/users/me', '/users/ann', '/any/where', '/own/thing/7']) await app.request(path)
    expect(keys).toEqual(['GET /users/me', 'GET /users/:name', 'GET /any/*', 'GET /own/thing/:id'])
  })

  test('a throttler in several places counts a request once', async () => {
    const app = new Hono()
    const first = throttle(FIVE)
    app.use(first)
    app.use('/users/*', throttle(first.throttler))
    app.get('/users/:name', (c) => c.json(c.get('throttle')?.remaining))
    expect(await (await app.request('/users/ann')).json()).toBe(4)
  })

  test('two throttlers tell of both limits, in their order, when they allow and when the second rejects', async () => {
    const app = new Hono()
    app.use(throttle({ ...FIVE, name: 'outer' }))
    app.use(throttle({ ...ONE, name: 'inner', key: 'all' }))
    app.get('/', (c) => c.text('hello'))
    const told = async () => {
      const { status, headers } = await app.request('/')
      return [status, headers.get('ratelimit')?.replace(/;t=\d+/g, '')]
    }
    expect(await told()).toEqual([200, '"outer";r=4, "inner";r=0'])
    expect(await told()).toEqual([429, '"outer";r=3, "inner";r=0'])
  })
})

describe('the limit fields', () => {
  test.each([
    ['a response of its own', () => new Response('raw', { headers: { 'X-Own': '1' } }), 200],
    ['an error', () => Promise.reject(new Error('boom')), 500],
  ])('are set on %s', async (_what, handler, status) => {
    const app = new Hono()
    app.onError((_error, c) => c.text('sorry', 500))
    app.use(throttle(FIVE))
    app.get('/', handler as never)
    const response = await app.request('/')
    expect(response.status).toBe(status)
    expect(response.headers.get('ratelimit')).toContain('r=4;')
  })

  test('that can not be set leave the response alone', async () => {
    const app = new Hono()
    const middleware = throttle(FIVE)
    const warnings: WeirError[] = []
    middleware.throttler.on('warning', ({ error }) => warnings.push(error))
    app.use(middleware).get('/', () => Response.error())
    expect((await app.request('/')).type).toBe('error')
    expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_OPTION_FUNCTION_FAILED'])
  })

  test('are set on a response that was fetched elsewhere, over those of the other server', async () => {
    const other = new Hono().get('/', (c) => c.text('other', 200, { RateLimit: '"theirs";r=1;t=1', 'X-Other': '1' }))
    const server = await serve(NEWEST, other)
    const app = new Hono()
    app.use(throttle(FIVE))
    app.get('/', () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
    const response = await app.request('/')
    server.close()
    expect(await response.text()).toBe('other')
    expect(response.headers.get('x-other')).toBe('1')
    expect(response.headers.get('ratelimit')).toMatch(/^"default";r=4;/)
  })
})

describe('rejections', () => {
  test("a handler's response is the answer; without one there is the standard answer, and a warning", async () => {
    const answers = async (handler: unknown) => {
      const app = new Hono()
      const middleware = throttle({ ...ONE, handler } as ThrottleOptions)
      const warnings: WeirError[] = []
      middleware.throttler.on('warning', ({ error }) => warnings.push(error))
      app.use(middleware).get('/', (c) => c.text('hello'))
      await app.request('/')
      const response = await app.request('/')
      return [response.status, response.headers.get('retry-after') !== null, await response.text(), warnings.length]
    }
    expect(await answers(() => new Response('mine', { status: 420 }))).toEqual([420, false, 'mine', 0])
    expect(await answers(async (c: { json: (body: unknown) => Response }) => c.json({ slow: true }))).toEqual([
      429,
      true,
      '{"slow":true}',
      0,
    ])
    const [status, told, body, warned] = await answers(() => undefined)
    expect([status, told, warned]).toEqual([429, true, 1])
    expect(body).toContain('quota-exceeded')
  })

  test('an error handler gets the rejection with status, headers and decision', async () => {
    const app = new Hono()
    app.onError((error, c) => {
      if (!(error instanceof ThrottledError)) throw error
      return c.json({ policy: error.decision.policy?.name, after: error.headers['Retry-After'] }, error.status as 429)
    })
    app.use(throttle({ ...ONE, throwOnReject: true })).get('/', (c) => c.text('hello'))
    await app.request('/')
    const response = await app.request('/')
    expect(response.status).toBe(429)
    expect(await response.json()).toEqual({ policy: 'default', after: expect.stringMatching(/^3(600|59\d)$/) })
    expect(response.headers.get('ratelimit')).toContain('r=0;')
  })
})

describe('without a connection, as in tests of an application', () => {
  test.each([
    ['skipFailedRequests', '/fails', '/works'],
    ['skipSuccessfulRequests', '/works', '/fails'],
  ])('%s refunds by the status of the response', async (option, refunded, counted) => {
    const app = new Hono()
    app.use(throttle({ ...ONE, key: 'all', [option]: true }))
    app.get('/works', (c) => c.text('hello'))
    app.get('/fails', (c) => c.text('no', 404))
    const found = await statuses(app, [refunded, refunded, counted, counted])
    expect(found.map((status) => status === 429)).toEqual([false, false, false, true])
  })

  test('all clients are one unknown address, with a warning', async () => {
    const app = new Hono()
    const limit = throttle({ ...ONE, key: 'ip' })
    const warnings = warningsOf(limit)
    app.use(limit).get('/', (c) => c.text('hello'))
    expect(await statuses(app, ['/', '/'])).toEqual([200, 429])
    expect(warnings).toEqual([expect.stringContaining('Set the option "address" to a function')])
  })
})

describe('addresses', () => {
  test.each([
    [1, '192.0.2.1', '192.0.2.1'],
    [1, '6.6.6.6, 192.0.2.1', '192.0.2.1'],
    [2, '6.6.6.6, 192.0.2.1 ,10.0.0.1', '192.0.2.1'],
    [2, '192.0.2.1', '192.0.2.1'],
    [3, ',,', ''],
    [1, `${'6.6.6.6,'.repeat(1000)}192.0.2.1`, '192.0.2.1'],
  ])('behind %j proxies, of "%.40s" it is "%s"', (proxies, listed, address) => {
    const c = { req: { header: () => listed }, env: undefined }
    expect(forwardedAddress(proxies)(c as never)).toBe(address)
  })

  test.each([[0], [1.5], [-1], [101], [Number.NaN], ['1'], [undefined]])('%j proxies are rejected', (proxies) => {
    expect(() => forwardedAddress(proxies as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test.each([[1], ['x-forwarded-for'], [null], [{}], [forwardedAddress]])('an option address that is none (%j) is rejected', (address) => {
    expect(() => throttle({ ...ONE, address } as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test('the option finds them; a function that throws leaves one unknown address, with a warning', async () => {
    const app = new Hono()
    app.use(throttle({ ...ONE, key: 'ip', address: forwardedAddress(1) })).get('/', (c) => c.text('hello'))
    const from = (address: string) => statuses(app, ['/'], { headers: { 'X-Forwarded-For': address } })
    expect([await from('192.0.2.1'), await from('192.0.2.2'), await from('6.6.6.6, 192.0.2.1')]).toEqual([[200], [200], [429]])
    const failing = new Hono()
    const address = () => {
      throw new Error('no platform')
    }
    const limit = throttle({ ...ONE, key: 'ip', address })
    const warnings = warningsOf(limit)
    failing.use(limit).get('/', (c) => c.text('hello'))
    expect(await statuses(failing, ['/', '/'])).toEqual([200, 429])
    expect(warnings).toEqual([expect.stringContaining('could not be found (no platform)')])
  })

  test.each([
    ['Bun', { requestIP: () => ({ address: '192.0.2.1' }) }],
    ['Bun in the environment', { server: { requestIP: () => ({ address: '192.0.2.1' }) } }],
    ['Deno', { remoteAddr: { transport: 'tcp', hostname: '192.0.2.1', port: 1 } }],
  ])('come from %s, where a streamed response keeps its slot', async (_, env) => {
    const limit = throttle({
      clock: ONE.clock,
      policies: [
        { name: 'rate', key: 'ip', limit: 5, interval: '1h' },
        { name: 'flight', key: 'ip', limit: 1, algorithm: concurrency() },
      ],
    })
    const app = new Hono().use(limit).get('/', (c) => c.text('hello'))
    const left = () => limit.throttler.peek('192.0.2.1').parts.map(({ remaining }) => remaining)
    const response = await app.request('/', {}, env)
    expect(left()).toEqual([4, 0])
    await response.text()
    expect(left()).toEqual([4, 1])
  })

  test.each([
    ['a promise', async () => '192.0.2.1'],
    // An unhandled rejection would end the process. Here it fails the run.
    ['a promise that is rejected', () => Promise.reject(new Error('no platform'))],
    ['what getConnInfo returns', () => ({ remote: { address: '192.0.2.1' } })],
  ])('a function that returns %s is answered by what to return', async (_, address) => {
    const limit = throttle({ ...ONE, key: 'ip', address: address as never })
    const warnings = warningsOf(limit)
    const app = new Hono()
    app.use(limit).get('/', (c) => c.text('hello'))
    expect(await statuses(app, ['/', '/'])).toEqual([200, 429])
    expect(warnings).toEqual([expect.stringContaining('. Return a string such as getConnInfo(c).remote.address, not a promise')])
  })
})
