import { concurrency, type WeirError } from '@weir/core'
import { manualClock } from '@weir/testing'
import type { FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const PLUGIN = { limit: 3, interval: '1h', key: 'all', clock: manualClock() } as const

describe.each(FRAMEWORKS)('%s: app.throttle', (_name, fastify) => {
  test.each(['onRequest', 'preValidation', 'preHandler'] as const)('limits a route as its hook %s, beside the plugin', async (hook) => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/login', { [hook]: app.throttle({ name: 'login', limit: 1 }) }, () => 'login')
    const answer = await app.inject('/login')
    expect(answer.headers['ratelimit']).toMatch(/^"default";r=2;t=\d+, "login";r=0;t=\d+$/)
    const rejected = await app.inject('/login')
    expect(rejected.statusCode).toBe(429)
    expect(rejected.json()['violated-policies']).toEqual(['login'])
    // The request passed the plugin's limits first, and counts there.
    expect(app.throttler.policies.map(({ name }) => name)).toEqual(['default', 'login'])
  })

  test('limits a part of the application, and a request once', async () => {
    const app = fastify()
    await app.register(weir, { ...PLUGIN, match: () => false })
    await app.register(async (child) => {
      const throttle = child.throttle({ name: 'part', limit: 2, key: 'all' })
      child.addHook('onRequest', throttle)
      child.get('/part', { preHandler: throttle }, () => 'part')
    })
    app.get('/', () => 'whole')
    const statuses = []
    for (const url of ['/part', '/part', '/part', '/']) statuses.push((await app.inject(url)).statusCode)
    expect(statuses).toEqual([200, 200, 429, 200])
  })

  test('without options stands for the limits of the plugin, which count a request once', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/', { preHandler: app.throttle() }, (request) => String(request.throttle?.remaining))
    expect((await app.inject('/')).body).toBe('2')
    expect((await app.inject('/')).body).toBe('1')
  })

  test('check counts without a hook, an answer or fields', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const reports = app.throttle({ name: 'reports', limit: 1, key: 'ip' })
    app.get('/', async (request) => {
      const first = await reports.check(request)
      const second = await reports.check(request)
      return [first?.allowed, second?.allowed, second?.policy?.name]
    })
    const answer = await app.inject('/')
    expect(answer.json()).toEqual([true, false, 'reports'])
    expect(answer.headers['ratelimit']).toMatch(/^"default";r=2;t=\d+$/)
  })

  test('peek shows how a route, a place and no route would be decided, and counts nothing', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const reports = app.throttle({ name: 'reports', limit: 1, key: 'ip' })
    const peek = async (request: FastifyRequest) => {
      const decisions = [await app.throttle.peek(request), await reports.peek(request), await app.throttle().peek(request)]
      return decisions.map((decision) => decision && [decision.policy?.name, decision.remaining])
    }
    app.get('/', peek)
    app.get('/own', { config: { throttle: { limit: 9 } } }, peek)
    app.get('/none', { config: { throttle: false } }, peek)
    app.setNotFoundHandler(peek)
    expect((await app.inject('/')).json()).toEqual([
      ['default', 2],
      ['reports', 1],
      ['default', 2],
    ])
    expect((await app.inject('/own')).json()).toEqual([
      ['GET /own', 8],
      ['reports', 1],
      ['default', 2],
    ])
    expect((await app.inject('/none')).json()).toEqual([null, ['reports', 1], ['default', 2]])
    expect((await app.inject('/nowhere')).json()).toEqual([null, ['reports', 1], ['default', 2]])
    expect((await app.inject('/')).json()).toEqual([
      ['default', 1],
      ['reports', 1],
      ['default', 1],
    ])
  })

  test('check holds slots until they are released', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const exports = app.throttle({ name: 'exports', limit: 1, key: 'all', algorithm: concurrency() })
    app.get('/', async (request) => {
      const first = await exports.check(request)
      const second = await exports.check(request)
      if (first !== undefined) app.throttler.release(first)
      const third = await exports.check(request)
      return [first?.allowed, second?.allowed, third?.allowed]
    })
    expect((await app.inject('/')).json()).toEqual([true, false, true])
  })

  test('its own limits need a name, and what can not be used is rejected at once', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    expect(() => app.throttle({ limit: 5 } as never)).toThrow(expect.objectContaining({ code: 'WEIR_MISSING_OPTION' }))
    expect(() => app.throttle('5' as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
    expect(() => app.throttle({ name: 'x', limt: 5 } as never)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION' }))
    expect(() => app.throttle({ name: 'default', limit: 1 })).toThrow(expect.objectContaining({ code: 'WEIR_DUPLICATE_POLICY' }))
  })

  test.each(['one', 'each'])(
    'limits that a handler gives, by %s name, are an error with the next step, and leave nothing behind',
    async (names) => {
      const app = fastify()
      await app.register(weir, { ...PLUGIN, limit: 99 })
      app.get('/:name', async (request) => {
        const { name } = request.params as { name: string }
        await app.throttle({ name, limit: 5 }).check(request)
      })
      app.setErrorHandler((error, _request, reply) => reply.send({ code: (error as WeirError).code, text: String(error) }))
      for (let i = 0; i < 3; i++) {
        const answer = await app.inject(names === 'one' ? '/login' : `/login${i}`)
        expect(answer.json()).toMatchObject({ code: 'WEIR_INVALID_OPTION', text: expect.stringContaining('before the application starts') })
      }
      expect(app.throttler.policies.map(({ name }) => name)).toEqual(['default'])
    },
  )

  test('of a child with a plugin of its own is that plugin', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    await app.register(async (child) => {
      await child.register(weir, { ...PLUGIN, name: 'child', limit: 7 })
      child.get('/', () => 'child')
      expect(child.throttler.policies[0]?.name).toBe('child')
    })
    expect(app.throttler.policies[0]?.name).toBe('default')
    await app.ready()
  })
})

describe.each(FRAMEWORKS)('%s: how a route answers', (_name, fastify) => {
  test('is its own choice, whatever the plugin chose', async () => {
    const app = fastify()
    await app.register(weir, { ...PLUGIN, limit: 1, key: 'route', throwOnReject: true })
    app.setErrorHandler((error, _request, reply) => reply.code(429).send(`handled ${(error as Error).name}`))
    app.get('/thrown', () => '')
    app.get('/message', { config: { throttle: { message: 'mine' } } }, () => '')
    app.get('/handler', { config: { throttle: { handler: (_request, reply) => reply.send('answered') } } }, () => '')
    const rejected = async (url: string) => {
      await app.inject(url)
      return (await app.inject(url)).body
    }
    expect(await rejected('/thrown')).toBe('handled ThrottledError')
    expect(await rejected('/message')).toBe('mine')
    expect(await rejected('/handler')).toBe('answered')

    const plain = fastify()
    await plain.register(weir, { ...PLUGIN, limit: 1, key: 'route', handler: (_request, reply) => reply.send('general') })
    plain.setErrorHandler((error, _request, reply) => reply.code(429).send(`handled ${(error as Error).name}`))
    plain.get('/message', { config: { throttle: { message: 'mine' } } }, () => '')
    plain.get('/thrown', { config: { throttle: { throwOnReject: true } } }, () => '')
    await plain.inject('/message')
    expect((await plain.inject('/message')).body).toBe('mine')
    await plain.inject('/thrown')
    expect((await plain.inject('/thrown')).body).toBe('handled ThrottledError')
  })
})
