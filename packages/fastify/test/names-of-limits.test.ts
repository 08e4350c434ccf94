import { manualClock } from '@weir/testing'
import type { FastifyContextConfig, FastifyInstance, InjectOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import { type RouteThrottleOptions, weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const PLUGIN = { key: 'route', limit: 9, interval: '1h', clock: manualClock() } as const

async function statuses(app: FastifyInstance, ...requests: readonly (string | InjectOptions)[]): Promise<number[]> {
  const found: number[] = []
  for (const request of requests) found.push((await app.inject(request as InjectOptions)).statusCode)
  return found
}

const names = (app: FastifyInstance) => app.throttler.policies.map(({ name }) => name)

describe.each(FRAMEWORKS)('%s: limits of routes', (_name, fastify) => {
  test('that an earlier onRoute hook makes anew for each route are shared by GET and HEAD', async () => {
    const app = fastify()
    app.addHook('onRoute', (options) => {
      const throttle: RouteThrottleOptions = { limit: 1, key: () => 'all' }
      options.config = { ...options.config, throttle } as FastifyContextConfig
    })
    await app.register(weir, PLUGIN)
    app.get('/page', () => 'page')
    app.get('/other', () => 'other')
    expect(await statuses(app, '/page', { method: 'HEAD', url: '/page' }, '/other', '/other')).toEqual([200, 429, 200, 429])
    expect(names(app)).toEqual(['default', 'GET /page', 'GET /other'])
  })

  test('that a later onRoute hook makes anew are shared as well, and checked at the start', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    let limit = 1
    app.addHook('onRoute', (options) => {
      const throttle: RouteThrottleOptions = { limit, key: () => 'all' }
      options.config = { ...options.config, throttle } as FastifyContextConfig
    })
    app.get('/page', () => 'page')
    expect(await statuses(app, '/page', { method: 'HEAD', url: '/page' })).toEqual([200, 429])

    const wrong = fastify()
    await wrong.register(weir, PLUGIN)
    limit = -1
    wrong.addHook('onRoute', (options) => {
      options.config = { ...options.config, throttle: { limit } } as FastifyContextConfig
    })
    wrong.get('/page', () => 'page')
    await expect(wrong.ready()).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('route GET /page') })
  })

  test('of two versions of a route are counted apart', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/users', { constraints: { version: '1.0.0' }, config: { throttle: { limit: 1 } } }, () => 'one')
    app.get('/users', { constraints: { version: '2.0.0' }, config: { throttle: { limit: 2 } } }, () => 'two')
    const of = (version: string) => ({ url: '/users', headers: { 'accept-version': version } })
    expect(await statuses(app, of('1.0.0'), of('1.0.0'))).toEqual([200, 429])
    expect(await statuses(app, of('2.0.0'), of('2.0.0'), of('2.0.0'))).toEqual([200, 200, 429])
    expect(names(app)).toEqual(['default', 'GET /users version=1.0.0', 'GET /users version=2.0.0'])
  })

  test('of a HEAD route of its own are its own', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.head('/page', { config: { throttle: { limit: 1 } } }, () => '')
    app.get('/page', { config: { throttle: { limit: 2 } } }, () => 'page')
    expect(await statuses(app, { method: 'HEAD', url: '/page' }, { method: 'HEAD', url: '/page' })).toEqual([200, 429])
    expect(await statuses(app, '/page', '/page', '/page')).toEqual([200, 200, 429])
  })

  test('of a prefix alone hold with and without a slash', async () => {
    const app = fastify()
    await app.register(weir, { ...PLUGIN, hook: 'preHandler' })
    await app.register(async (child) => void child.get('/', { config: { throttle: { limit: 2, key: 'all' } } }, () => 'v1'), {
      prefix: '/v1',
    })
    expect(await statuses(app, '/v1', '/v1/', '/v1', '/v1/')).toEqual([200, 200, 429, 429])
  })

  test.each(['the route itself', 'a later onRoute hook', 'the plugin'])(
    'of a prefix alone are those of its HEAD routes: by %s',
    async (by) => {
      const app = fastify({ exposeHeadRoutes: true })
      const limits = () => ({ throttle: { limit: 3, key: by === 'the route itself' ? ('route' as const) : () => 'all' } })
      await app.register(weir, by === 'the plugin' ? { ...PLUGIN, limit: 3, key: 'route' } : PLUGIN)
      if (by === 'a later onRoute hook') {
        app.addHook('onRoute', (options) => {
          options.config = { ...options.config, ...limits() } as FastifyContextConfig
        })
      }
      const config = by === 'the route itself' ? limits() : {}
      await app.register(async (child) => void child.get('/', { config }, () => 'part'), { prefix: '/part' })
      const head = (url: string) => ({ method: 'HEAD', url }) as const
      expect(await statuses(app, head('/part/'), head('/part'), '/part/', '/part', head('/part/'), head('/part'), '/part/')).toEqual([
        200, 200, 200, 429, 429, 429, 429,
      ])
      expect(names(app)).toEqual(by === 'the plugin' ? ['default'] : ['default', 'GET /part'])
    },
  )

  test('with one name and the same rule are shared; with another rule they are rejected, naming the route', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.post('/login', { config: { throttle: { name: 'login', limit: 2, key: 'all' } } }, () => '')
    app.post('/sign-in', { config: { throttle: { name: 'login', limit: 2, key: 'all' } } }, () => '')
    const post = (url: string) => ({ method: 'POST', url }) as const
    expect(await statuses(app, post('/login'), post('/sign-in'), post('/login'), post('/sign-in'))).toEqual([200, 200, 429, 429])

    const other = fastify()
    await other.register(weir, PLUGIN)
    other.post('/login', { config: { throttle: { name: 'login', limit: 2 } } }, () => '')
    expect(() => other.post('/sign-in', { config: { throttle: { name: 'login', limit: 3 } } }, () => '')).toThrow(
      expect.objectContaining({ code: 'WEIR_DUPLICATE_POLICY', message: expect.stringContaining('POST /sign-in') }),
    )
  })
})
