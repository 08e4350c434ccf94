import { createThrottler, type WeirError } from '@weir/core'
import { manualClock } from '@weir/testing'
import type { Request } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const clock = manualClock()
const ONE = { key: 'route', limit: 1, interval: '1h', clock } as const

describe.each(FRAMEWORKS)('%s', (_name, express) => {
  test('a middleware of a route counts by its pattern', async () => {
    const app = express()
    app.get('/users/:name', throttle(ONE), (_req, res) => void res.send('user'))
    await supertest(app).get('/users/ann').expect(200, 'user')
    await supertest(app).get('/users/bob').expect(429)
  })

  test('a middleware that is not called itself says so to the error handler', async () => {
    const app = express()
    app.use(throttle as never)
    app.use(((error: WeirError, _req: Request, res: { status(code: number): { send(body: string): void } }, _next: unknown) => {
      res.status(500).send(`${error.code} ${error.message}`)
    }) as never)
    const { text } = await supertest(app).get('/').expect(500)
    expect(text).toContain('WEIR_INVALID_OPTION')
    expect(text).toContain('Write app.use(throttle({ key: "ip", limit: 100, interval: "1m" })) instead of app.use(throttle).')
  })

  test('two mounts of one router are two places', async () => {
    const app = express()
    const router = express.Router()
    router.use(throttle(ONE))
    router.get('/x', (_req, res) => void res.send('x'))
    app.use('/a', router)
    app.use('/b', router)
    await supertest(app).get('/a/x').expect(200)
    await supertest(app).get('/b/x').expect(200)
    await supertest(app).get('/a/x').expect(429)
  })

  test('a middleware of a route below a mount with a parameter counts by pattern and mount', async () => {
    const app = express()
    const router = express.Router()
    router.get('/:name', throttle(ONE), (_req, res) => void res.send('x'))
    app.use('/tenants/:tenant/users', router)
    await supertest(app).get('/tenants/42/users/ann').expect(200)
    await supertest(app).get('/tenants/43/users/bob').expect(429)
    // Express does not expose the pattern of a mount, so the path of each mount makes its own key.
    await supertest(app).get('/tenants/ann/users/bob').expect(200)
    await supertest(app).get('/tenants/bob/users/bob').expect(200)
  })

  test('nothing is awaited for a request that passes', () => {
    const middleware = throttle({ ...ONE, limit: 5 })
    let passed = false
    const headers: Record<string, string> = {}
    const req = { method: 'GET', originalUrl: '/', headers: {}, baseUrl: '' } as unknown as Request
    middleware(req, { setHeader: (name: string, value: string) => void (headers[name] = value) } as never, () => {
      passed = true
    })
    expect(passed).toBe(true)
    expect(Object.keys(headers)).toEqual(['RateLimit-Policy', 'RateLimit'])
  })

  test('an error handler gets a rejection as a typed error', async () => {
    const app = express()
    app.use(throttle({ ...ONE, throwOnReject: true }))
    app.get('/', (_req, res) => void res.send('hello'))
    const handler: import('express').ErrorRequestHandler = (error, _req, res, _next) => {
      res.status(error.statusCode).json({ code: error.code, policy: error.decision.policy.name })
    }
    app.use(handler)
    await supertest(app).get('/').expect(200)
    const answer = await supertest(app).get('/').expect(429, { code: 'WEIR_THROTTLED', policy: 'default' })
    expect(answer.headers).toHaveProperty('retry-after')
    expect(answer.headers).toHaveProperty('ratelimit')
  })

  test('a proxy setting under which clients choose their address, or share that of the proxy, is reported once', async () => {
    const reports = async (setting: unknown, key: 'ip' | 'route') => {
      const app = express()
      app.set('trust proxy', setting)
      const middleware = throttle({ ...ONE, limit: 9, key })
      const warnings: WeirError[] = []
      middleware.throttler.on('warning', ({ error }) => warnings.push(error))
      app.use(middleware)
      app.get('/', (_req, res) => void res.send('hello'))
      for (let i = 0; i < 3; i++) await supertest(app).get('/').set('X-Forwarded-For', `192.0.2.${i}`)
      return warnings.length
    }
    expect(await reports(true, 'ip')).toBe(1)
    expect(await reports(true, 'route')).toBe(0)
    expect(await reports(1, 'ip')).toBe(0)
    expect(await reports('loopback', 'ip')).toBe(0)
    expect(await reports(false, 'ip')).toBe(1)
  })

  test('the address is that of the trusted proxies', async () => {
    const app = express()
    app.set('trust proxy', 1)
    app.use(throttle({ ...ONE, key: 'ip' }))
    app.get('/', (_req, res) => void res.send('hello'))
    const from = (list: string) => supertest(app).get('/').set('X-Forwarded-For', list)
    await from('203.0.113.1').expect(200)
    await from('203.0.113.2').expect(200)
    // The client wrote the first address, the proxy appended the second.
    await from('198.51.100.9, ::ffff:203.0.113.1').expect(429)
    await from('2001:db8:0:1::1').expect(200)
    await from('2001:db8:0:1::2').expect(429)
  })

  test('limits by plan', async () => {
    const app = express()
    const warnings: WeirError[] = []
    const middleware = throttle({
      clock,
      name: 'api',
      interval: '1h',
      plans: { free: 1, pro: 2 },
      plan: (req) => req.get('x-plan') as 'free' | 'pro',
      key: 'all',
    })
    middleware.throttler.on('warning', ({ error }) => warnings.push(error))
    app.use(middleware)
    app.get('/', (_req, res) => void res.send('hello'))
    const as = async (plan: string) => (await supertest(app).get('/').set('x-plan', plan)).status
    expect([await as('pro'), await as('pro'), await as('pro')]).toEqual([200, 200, 429])
    expect([await as('free'), await as('free')]).toEqual([200, 429])
    expect([await as('golden'), await as('golden')]).toEqual([429, 429])
    expect(warnings).toHaveLength(1)
    const answer = await supertest(app).get('/').set('x-plan', 'pro')
    expect(answer.headers['ratelimit-policy']).toBe('"api:pro";q=2;w=3600')
  })

  test('one throttler for several applications', async () => {
    const throttler = createThrottler({ clock, policies: [{ limit: 1, interval: '1h', key: 'all' }] })
    const apps = [express(), express()]
    for (const app of apps) app.use(throttle(throttler)).get('/', (_req, res) => void res.send('hello'))
    await supertest(apps[0]!).get('/').expect(200)
    await supertest(apps[1]!).get('/').expect(429)
  })
})
