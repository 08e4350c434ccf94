import type { WeirError } from '@weir/core'
import { manualClock } from '@weir/testing'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

describe.each(FRAMEWORKS)('%s', (_name, fastify) => {
  async function appWith(options: object) {
    const clock = manualClock()
    const app = fastify()
    const warnings: WeirError[] = []
    await app.register(weir, { limit: 1, interval: '1h', key: 'all', clock, callbackTimeout: 50, ...options })
    app.throttler.on('warning', ({ error }) => warnings.push(error))
    return { app, clock, warnings }
  }

  test('an async handler that only returns something leaves no request without an answer', async () => {
    const { app, clock, warnings } = await appWith({ handler: async () => ({ error: 'slow down' }) })
    app.get('/', () => 'hello')
    expect((await app.inject('/')).statusCode).toBe(200)
    let answered = false
    const rejected = app.inject('/').finally(() => {
      answered = true
    })
    while (!answered) {
      await clock.advance(50)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await rejected).toMatchObject({ statusCode: 429, body: expect.stringContaining('quota-exceeded') })
    expect(warnings).toMatchObject([{ code: 'WEIR_WARN_OPTION_FUNCTION_FAILED', message: expect.stringContaining('sent no answer') }])
    await app.close()
  })

  test('an answer that a hook of the application still works on is waited for', async () => {
    const { app, clock, warnings } = await appWith({
      handler: async (_request: FastifyRequest, reply: FastifyReply) => {
        void reply.send('mine')
      },
    })
    app.addHook('onSend', async () => {
      await new Promise((resolve) => setImmediate(resolve))
    })
    app.get('/', () => 'hello')
    await app.inject('/')
    expect(await app.inject('/')).toMatchObject({ statusCode: 429, body: 'mine' })
    await clock.advance(500)
    expect(warnings).toEqual([])
    await app.close()
  })

  test('a route that waits is counted as that route, whatever comes meanwhile', async () => {
    const waiting: (() => void)[] = []
    const { app } = await appWith({
      key: 'route',
      skip: (request: FastifyRequest) => request.url === '/slow' && new Promise<void>((resolve) => waiting.push(resolve)).then(() => false),
    })
    app.get('/slow', () => 'slow')
    app.get('/fast', () => 'fast')
    const slow = app.inject('/slow')
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
    expect((await app.inject('/fast')).statusCode).toBe(200)
    waiting[0]?.()
    expect((await slow).statusCode).toBe(200)
    expect(app.throttler.peek('GET /slow').remaining).toBe(0)
    await app.close()
  })
})
