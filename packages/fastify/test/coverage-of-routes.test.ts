import { manualClock } from '@weir/testing'
import type { FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ONE = { key: 'route', limit: 1, interval: '1h', clock: manualClock() } as const

async function statuses(app: FastifyInstance, ...targets: string[]): Promise<number[]> {
  const found: number[] = []
  for (const target of targets) {
    const [method, url] = target.includes(' ') ? (target.split(' ') as ['GET', string]) : (['GET', target] as const)
    found.push((await app.inject({ method, url })).statusCode)
  }
  return found
}

describe.each(FRAMEWORKS)('%s: every route is throttled', (_name, fastify) => {
  test('one that was declared before the plugin', async () => {
    const app = fastify()
    app.get('/early', () => 'early')
    await app.register(weir, ONE)
    expect(await statuses(app, '/early', '/early')).toEqual([200, 429])
  })

  test('one that was declared in the same tick', async () => {
    const app = fastify()
    app.register(weir, ONE)
    app.get('/same', () => 'same')
    expect(await statuses(app, '/same', '/same')).toEqual([200, 429])
  })

  test('one of a child that was registered before or after', async () => {
    const app = fastify()
    app.register(async (child) => void child.get('/before', () => 'before'), { prefix: '/v1' })
    app.register(weir, ONE)
    app.register(async (child) => void child.get('/after', () => 'after'), { prefix: '/v1' })
    expect(await statuses(app, '/v1/before', '/v1/before', '/v1/after', '/v1/after')).toEqual([200, 429, 200, 429])
  })

  test('what has no route only where that is asked for', async () => {
    const unasked = fastify()
    await unasked.register(weir, { ...ONE, key: 'ip' })
    unasked.get('/', () => 'hello')
    expect(await statuses(unasked, '/a', '/b', '/', '/')).toEqual([404, 404, 200, 429])
    const asked = fastify()
    await asked.register(weir, ONE)
    asked.setNotFoundHandler({ preHandler: asked.throttle() }, (_request, reply) => reply.code(404).send('nothing here'))
    expect(await statuses(asked, '/a', '/b')).toEqual([404, 429])
  })

  test('what has no route by limits of its own', async () => {
    const app = fastify()
    await app.register(weir, { ...ONE, key: 'ip' })
    app.get('/', () => 'hello')
    const preHandler = app.throttle({ name: 'not-found', limit: 2 })
    app.setNotFoundHandler({ preHandler }, (_request, reply) => reply.code(404).send('nothing here'))
    expect(await statuses(app, '/a', '/b', '/c', '/', '/')).toEqual([404, 404, 429, 200, 429])
  })

  test('HEAD routes that Fastify adds, with GET', async () => {
    const app = fastify()
    await app.register(weir, ONE)
    app.get('/page', () => 'page')
    expect(await statuses(app, 'HEAD /page', 'GET /page')).toEqual([200, 429])
  })

  test('routes with parameters and prefixes, by their pattern', async () => {
    const app = fastify()
    await app.register(weir, ONE)
    await app.register(async (child) => void child.get('/users/:name', () => 'user'), { prefix: '/v1' })
    const answer = await app.inject('/v1/users/ann')
    expect(answer.statusCode).toBe(200)
    expect(await statuses(app, '/v1/users/bob', '/v1/users/cat')).toEqual([429, 429])
  })

  test('only its own when it is registered in a child', async () => {
    const app = fastify()
    app.get('/free', () => 'free')
    await app.register(async (child) => {
      await child.register(weir, ONE)
      child.get('/limited', () => 'limited')
    })
    expect(await statuses(app, '/free', '/free', '/limited', '/limited')).toEqual([200, 200, 200, 429])
  })

  test('an unknown hook is rejected', async () => {
    await expect(fastify().register(weir, { ...ONE, hook: 'onSend' as 'onRequest' })).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  })
})
