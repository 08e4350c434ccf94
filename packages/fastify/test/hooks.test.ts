import { manualClock } from '@weir/testing'
import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

type WithUser = FastifyRequest & { user?: string }

const byUser = (request: FastifyRequest) => (request as WithUser).user ?? 'nobody'
const ONE = { limit: 1, interval: '1h', clock: manualClock(), key: byUser } as const

/** Authenticates in a hook, as applications do. */
async function signIn(request: FastifyRequest): Promise<void> {
  ;(request as WithUser).user = String(request.headers['x-user'])
}

async function statuses(app: FastifyInstance, url: string, users: readonly string[]): Promise<number[]> {
  const found: number[] = []
  for (const user of users) found.push((await app.inject({ url, headers: { 'x-user': user } })).statusCode)
  return found
}

describe.each(FRAMEWORKS)('%s: hook', (_name, fastify) => {
  function application(): FastifyInstance {
    return fastify().decorateRequest('user', undefined)
  }

  test.each(['preValidation', 'preHandler'] as const)('%s comes after hooks of the application that are added later', async (hook) => {
    const app = application()
    await app.register(weir, { ...ONE, hook })
    app.addHook(hook, signIn)
    app.get('/', () => 'hello')
    expect(await statuses(app, '/', ['ann', 'bob', 'ann'])).toEqual([200, 200, 429])
  })

  test('the plugin given as a hook says that it is none', async () => {
    const app = application()
    app.addHook('onRequest', weir as never)
    app.get('/', () => 'hello')
    const { statusCode, json } = await app.inject('/')
    expect(statusCode).toBe(500)
    expect(json()).toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('Write app.register(weir, {') })
  })

  test.each(['preValidation', 'preHandler'] as const)('%s comes after hooks of the route', async (hook) => {
    const app = application()
    await app.register(weir, { ...ONE, hook })
    app.get('/one', { [hook]: signIn }, () => 'one')
    app.get('/several', { [hook]: [async () => {}, signIn] }, () => 'several')
    await app.register(async (child) => void child.get('/child', { [hook]: signIn }, () => 'child'))
    for (const url of ['/one', '/several', '/child']) {
      app.throttler.reset('ann')
      app.throttler.reset('bob')
      expect(await statuses(app, url, ['ann', 'bob', 'ann']), url).toEqual([200, 200, 429])
    }
  })

  test('preHandler holds for routes that were declared before the plugin', async () => {
    const app = application()
    app.addHook('preHandler', signIn)
    app.get('/early', () => 'early')
    await app.register(weir, { ...ONE, hook: 'preHandler' })
    expect(await statuses(app, '/early', ['ann', 'bob', 'ann'])).toEqual([200, 200, 429])
  })

  test('a request is counted once, whichever hooks see it', async () => {
    const app = application()
    await app.register(weir, { limit: 3, interval: '1h', key: 'all', clock: manualClock(), hook: 'preHandler' })
    app.get('/plain', () => 'plain')
    app.get('/own', { config: { throttle: { limit: 2 } } }, () => 'own')
    expect((await app.inject('/plain')).headers['ratelimit']).toMatch(/r=2;/)
    expect((await app.inject({ method: 'HEAD', url: '/plain' })).headers['ratelimit']).toMatch(/r=1;/)
    expect((await app.inject('/own')).headers['ratelimit']).toMatch(/r=1;/)
  })

  test('of a route replaces that of the plugin, in either direction', async () => {
    const app = application()
    await app.register(weir, { ...ONE })
    app.get('/signed', { preHandler: signIn, config: { throttle: { hook: 'preHandler', limit: 1 } } }, () => 'signed')
    expect(await statuses(app, '/signed', ['ann', 'bob', 'ann'])).toEqual([200, 200, 429])

    const late = application()
    await late.register(weir, { ...ONE, hook: 'preHandler' })
    const seen: string[] = []
    late.addHook('preValidation', async () => void seen.push('preValidation'))
    late.get('/soon', { config: { throttle: { hook: 'onRequest', limit: 1 } } }, () => 'soon')
    expect(await statuses(late, '/soon', ['ann', 'bob'])).toEqual([200, 429])
    expect(seen).toEqual(['preValidation'])
  })

  test('false turns a route off, whatever the hook', async () => {
    const app = application()
    await app.register(weir, { ...ONE, hook: 'preHandler' })
    app.get('/free', { config: { throttle: false } }, () => 'free')
    expect(await statuses(app, '/free', ['ann', 'ann', 'ann'])).toEqual([200, 200, 200])
  })

  test('of a route that was declared before the plugin can not be followed, which is told', async () => {
    const app = application()
    app.get('/early', { preHandler: signIn, config: { throttle: { hook: 'preHandler', limit: 5 } } }, () => 'early')
    await app.register(weir, { ...ONE })
    const warnings: string[] = []
    app.throttler.on('warning', ({ error }) => warnings.push(error.message))
    expect(await statuses(app, '/early', ['ann', 'bob'])).toEqual([200, 429])
    expect(warnings).toEqual([expect.stringContaining('route GET /early came too late')])
  })

  test('that another onRoute hook gives after the plugin has seen the route rejects the start', async () => {
    const app = application()
    await app.register(weir, { ...ONE })
    app.addHook('onRoute', (options) => {
      options.config = { ...options.config, throttle: { limit: 2, hook: 'preHandler' } } as FastifyContextConfig
    })
    app.get('/', () => 'hello')
    await expect(app.ready()).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('route GET /') })
  })

  test('an unknown one is rejected', async () => {
    await expect(fastify().register(weir, { ...ONE, hook: 'onSend' as 'onRequest' })).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  })
})
