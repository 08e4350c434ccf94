import Router from '@koa/router'
import type { WeirError } from '@weir/core'
import { manualClock } from '@weir/testing'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ONE = { key: 'route', limit: 1, interval: '1h', clock: manualClock() } as const

describe.each(FRAMEWORKS)('%s', (_name, Koa) => {
  test('a middleware of a router or route counts by its pattern', async () => {
    const app = new Koa()
    const router = new Router({ prefix: '/v1' })
    router.get('/users/:name', throttle(ONE), (ctx) => {
      ctx.body = 'user'
    })
    app.use(router.routes())
    const request = supertest(app.callback())
    await request.get('/v1/users/ann').expect(200, 'user')
    await request.get('/v1/users/bob').expect(429)
  })

  test('a misspelled router is recognized', () => {
    const misspelled = { ...ONE, rooter: new Router() }
    expect(() => throttle(misspelled as typeof ONE)).toThrow('Unknown option "rooter". Did you mean "router"?')
  })

  test('a middleware that is not called itself says so to the error handler', async () => {
    const app = new Koa()
    const errors: WeirError[] = []
    app.on('error', (error) => errors.push(error))
    app.use(throttle as never)
    await supertest(app.callback()).get('/').expect(500)
    expect(errors).toMatchObject([{ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('instead of app.use(throttle).') }])
  })

  test('a request is rejected although a middleware before has left the response to one behind', async () => {
    const app = new Koa()
    app.use((ctx, next) => {
      ctx.respond = false
      return next()
    })
    app.use(throttle(ONE))
    app.use((ctx) => {
      ctx.res.statusCode = 200
      ctx.res.end('raw')
    })
    const request = supertest(app.callback())
    await request.get('/').expect(200, 'raw')
    await request.get('/').expect(429, /quota-exceeded/)
  })

  test.each([[{}], ['/'], [null]])('a router that is none (%j) is rejected', (router) => {
    expect(() => throttle({ ...ONE, router } as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test('headers survive ctx.throw, and the error keeps those of its own', async () => {
    const app = new Koa()
    app.silent = true
    app.use(throttle({ ...ONE, limit: 5 }))
    app.use((ctx) => ctx.throw(503, 'later', { headers: { 'X-Reason': 'tea' } }))
    const { headers } = await supertest(app.callback()).get('/').expect(503)
    expect(headers).toMatchObject({ ratelimit: expect.any(String), 'ratelimit-policy': expect.any(String), 'x-reason': 'tea' })
  })

  test('one error object thrown for every request tells each client its own state', async () => {
    const app = new Koa()
    app.silent = true
    const shared = Object.assign(new Error('no'), { status: 404, expose: true })
    app.use(throttle({ ...ONE, limit: 5 }))
    app.use(() => {
      throw shared
    })
    const request = supertest(app.callback())
    for (const left of [4, 3, 2]) expect((await request.get('/')).headers['ratelimit']).toContain(`r=${left};`)
  })

  test.each([
    [
      'an error whose headers cannot be set',
      Object.defineProperty(Object.assign(new Error('no'), { status: 404 }), 'headers', { value: undefined }),
    ],
    ['no error at all', 'text'],
  ])('%s is left alone', async (_what, thrown) => {
    const app = new Koa()
    app.silent = true
    app.use(throttle({ ...ONE, limit: 5 }))
    app.use(() => {
      throw thrown
    })
    const { status } = await supertest(app.callback()).get('/')
    expect(status).toBe(thrown instanceof Error ? 404 : 500)
  })

  test('a proxy setting under which clients choose their address, or share one, is reported with the next step', async () => {
    const reports = async (settings: object) => {
      const app = Object.assign(new Koa(), settings)
      const middleware = throttle({ ...ONE, limit: 9, key: 'ip' })
      const warnings: WeirError[] = []
      middleware.throttler.on('warning', ({ error }) => warnings.push(error))
      app.use(middleware).use((ctx) => {
        ctx.body = 'hello'
      })
      await supertest(app.callback()).get('/').set('X-Forwarded-For', '192.0.2.1')
      return warnings.map(({ message }) => message)
    }
    expect(await reports({ proxy: true })).toEqual([expect.stringContaining('Set "app.maxIpsCount"')])
    expect(await reports({ proxy: true, maxIpsCount: 1 })).toEqual([])
    expect(await reports({})).toEqual([expect.stringContaining('Set app.proxy = true, and app.maxIpsCount = 1 for one proxy.')])
  })
})
