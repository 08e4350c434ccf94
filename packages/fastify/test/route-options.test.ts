import { createThrottler } from '@weir/core'
import { manualClock } from '@weir/testing'
import type { FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const clock = manualClock()
const PLUGIN = { key: 'route', limit: 3, interval: '1h', clock } as const

async function statuses(app: FastifyInstance, url: string, count: number): Promise<number[]> {
  const found: number[] = []
  for (let i = 0; i < count; i++) found.push((await app.inject(url)).statusCode)
  return found
}

describe.each(FRAMEWORKS)('%s: register', (_name, fastify) => {
  test('of a throttler says that it is an option', async () => {
    const app = fastify()
    const throttler = createThrottler({ policies: [{ key: 'route', limit: 1, interval: '1h' }], clock })
    await expect(app.register(weir, throttler as never)).rejects.toThrow('app.register(weir, { throttler })')
  })
})

describe.each(FRAMEWORKS)('%s: config.throttle', (_name, fastify) => {
  test('false leaves a route alone', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/cheap', { config: { throttle: false } }, () => 'cheap')
    const answer = await app.inject('/cheap')
    expect(answer.headers).not.toHaveProperty('ratelimit')
    expect(await statuses(app, '/cheap', 5)).toEqual([200, 200, 200, 200, 200])
  })

  test("options replace the plugin's, and take from it what they don't say", async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/expensive', { config: { throttle: { limit: 1 } } }, () => 'expensive')
    app.get('/usual', () => 'usual')
    expect(await statuses(app, '/expensive', 2)).toEqual([200, 429])
    expect((await app.inject('/expensive')).headers['ratelimit-policy']).toBe('"GET /expensive";q=1;w=3600')
    expect(await statuses(app, '/usual', 4)).toEqual([200, 200, 200, 429])
  })

  test('options of the adapter are replaced too', async () => {
    const app = fastify()
    await app.register(weir, { ...PLUGIN, headers: 'legacy', message: 'general' })
    app.get('/own', { config: { throttle: { limit: 1, message: 'my own' } } }, () => 'own')
    await app.inject('/own')
    const answer = await app.inject('/own')
    expect(answer.body).toBe('my own')
    expect(answer.headers).toHaveProperty('x-ratelimit-limit', '1')
  })

  test('several levels', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const policies = [
      { name: 'burst', limit: 1, interval: '1s' },
      { name: 'steady', limit: 2, interval: '1h' },
    ] as const
    app.get('/levels', { config: { throttle: { policies } } }, () => 'levels')
    expect((await app.inject('/levels')).headers['ratelimit']).toMatch(/^"burst";r=0;t=\d+, "steady";r=1;t=\d+$/)
    expect((await app.inject('/levels')).json()['violated-policies']).toEqual(['burst'])
  })

  test('limits by plan', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const throttle = { plans: { free: 1, pro: 2 }, plan: (request: { headers: object }) => (request.headers as { plan: string }).plan }
    app.get('/planned', { config: { throttle } }, () => 'planned')
    const as = async (plan: string) => (await app.inject({ url: '/planned', headers: { plan } })).statusCode
    expect([await as('free'), await as('free'), await as('pro'), await as('pro'), await as('pro')]).toEqual([200, 429, 200, 200, 429])
  })

  test('two routes with one key are counted apart, also with one options object', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    const throttle = { limit: 1, key: 'ip' } as const
    app.get('/one', { config: { throttle } }, () => 'one')
    app.get('/two', { config: { throttle } }, () => 'two')
    expect(await statuses(app, '/one', 2)).toEqual([200, 429])
    expect(await statuses(app, '/two', 2)).toEqual([200, 429])
  })

  test('HEAD and GET share the limit of a route', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/page', { config: { throttle: { limit: 1 } } }, () => 'page')
    expect((await app.inject({ method: 'HEAD', url: '/page' })).statusCode).toBe(200)
    expect(await statuses(app, '/page', 1)).toEqual([429])
  })

  test('holds for routes that were declared before the plugin or in the same tick', async () => {
    const app = fastify()
    app.get('/early', { config: { throttle: { limit: 1 } } }, () => 'early')
    app.get('/early-free', { config: { throttle: false } }, () => 'free')
    app.register(weir, PLUGIN)
    app.get('/same', { config: { throttle: { limit: 2 } } }, () => 'same')
    expect(await statuses(app, '/early', 2)).toEqual([200, 429])
    expect(await statuses(app, '/same', 3)).toEqual([200, 200, 429])
    expect(await statuses(app, '/early-free', 5)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses(app, '/early', 1)).toEqual([429])
  })

  test('all routes live in one throttler, and outlive an update of the rules', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    app.get('/expensive', { config: { throttle: { limit: 1 } } }, () => 'expensive')
    app.get('/usual', () => 'usual')
    expect(await statuses(app, '/expensive', 2)).toEqual([200, 429])
    expect(app.throttler.policies.map(({ name }) => name)).toEqual(['default', 'GET /expensive'])
    app.throttler.update([{ key: 'route', limit: 1, interval: '1h' }])
    expect(await statuses(app, '/usual', 2)).toEqual([200, 429])
    // The update removed the route's policy. It is added again, so it starts without counts in this process.
    expect(await statuses(app, '/expensive', 3)).toContain(429)
  })

  test.each<[given: unknown, code: string]>([
    [{ limit: 0 }, 'WEIR_INVALID_OPTION'],
    [{ limt: 5 }, 'WEIR_UNKNOWN_OPTION'],
    [{ key: 'user' }, 'WEIR_INVALID_OPTION'],
    [{ limit: 5, hook: 'onSend' }, 'WEIR_INVALID_OPTION'],
    [true, 'WEIR_INVALID_OPTION'],
    [null, 'WEIR_INVALID_OPTION'],
    [[], 'WEIR_INVALID_OPTION'],
    [() => 5, 'WEIR_INVALID_OPTION'],
  ])('%j is rejected where the route is declared, which is named', async (given, code) => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    expect(() => app.get('/bad', { config: { throttle: given as false } }, () => '')).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining('"config.throttle" of route GET /bad') }),
    )
  })

  test('a misspelled hook is recognized, of the plugin and of a route', async () => {
    const app = fastify()
    const misspelled = { ...PLUGIN, hoook: 'preHandler' }
    await expect(app.register(weir, misspelled as typeof PLUGIN)).rejects.toThrow('Unknown option "hoook". Did you mean "hook"?')
    const other = fastify()
    await other.register(weir, PLUGIN)
    const throttle = { limit: 5, hooks: 'preHandler' } as unknown as false
    expect(() => other.get('/bad', { config: { throttle } }, () => '')).toThrow('Unknown option "hooks". Did you mean "hook"?')
  })

  test.each([{ limit: 1 }, false])('%j beside config, where Fastify ignores it, is rejected with the right place', async (throttle) => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    expect(() => app.get('/bad', { throttle } as object, () => '')).toThrow(
      expect.objectContaining({
        code: 'WEIR_INVALID_OPTION',
        message: expect.stringMatching(/"throttle" of route GET \/bad .* config: \{ throttle: /),
      }),
    )
    app.get('/good', { throttle: undefined } as object, () => '')
  })

  test('what can not be used in a route that was declared before leaves the limits of the plugin, with a warning', async () => {
    const app = fastify()
    app.get('/early', { config: { throttle: { limit: 0 } } }, () => 'early')
    await app.register(weir, PLUGIN)
    const warnings: string[] = []
    app.throttler.on('warning', ({ error }) => warnings.push(error.message))
    expect(await statuses(app, '/early', 4)).toEqual([200, 200, 200, 429])
    expect(warnings).toEqual([expect.stringContaining('/early')])
  })

  test('with a shared throttler a route needs one too', async () => {
    const app = fastify()
    const throttler = createThrottler({ clock, policies: [{ key: 'route', limit: 3, interval: '1h' }] })
    await app.register(weir, { throttler })
    expect(() => app.get('/bad', { config: { throttle: { limit: 1 } } }, () => '')).toThrow(
      expect.objectContaining({ code: 'WEIR_MISSING_OPTION' }),
    )
    const own = createThrottler({ clock, policies: [{ name: 'own', key: 'route', limit: 1, interval: '1h' }] })
    app.get('/own', { config: { throttle: { throttler: own } } }, () => 'own')
    expect(await statuses(app, '/own', 2)).toEqual([200, 429])
    await app.close()
    expect(throttler.state).toBe('local')
  })

  test('the throttler of the plugin is closed with the application', async () => {
    const app = fastify()
    await app.register(weir, PLUGIN)
    await app.ready()
    await app.close()
    expect(app.throttler.state).toBe('closed')
  })
})
