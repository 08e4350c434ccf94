import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import type { Request, Response } from 'express'
import { describe, expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ROUTES: readonly SpelledRoute[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/a\\!b/c', path: '/a!b/c' },
  { match: "/it's", path: "/it's" },
  { match: '/it%27s%20me', path: '/it%27s%20me' },
  // Express also ignores the case of Latin-1 letters.
  { match: '/é', path: '/\xe9', keys: 3 },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/from/:a-:b', path: '/from/a%2db-c' },
  { match: '/files/*rest', path: '/files/a/b' },
  { match: '/m/login', path: '/m/login' },
  { match: '/m/m', path: '/m/m' },
  { match: '/t/:tenant/users/:name', path: '/t/a/users/b' },
  { match: '/:any/two', path: '/one/two' },
  // Route keys follow Express's own router, so this route makes a key per spelling.
  { match: '/w/login', path: '/w/login', keys: Number.POSITIVE_INFINITY },
]

describe.each(FRAMEWORKS)('%s', (name, express) => {
  test('a request that reaches a handler is counted by the policy of its route, however its target is spelled', async () => {
    const old = name === 'Express 4'
    const app = express()
    app.set('env', 'test')
    app.use(throttle({ policies: spellingPolicies(ROUTES), clock: manualClock() }))
    const reached = (handler: string) => (req: Request, res: Response) => void res.json(spelledAnswer(handler, req.throttle))
    app.get('/', reached('/'))
    app.get('/login', reached('/login'))
    app.get(old ? '/a!b/c' : '/a\\!b/c', reached('/a\\!b/c'))
    app.get("/it's", reached("/it's"))
    app.get('/it%27s%20me', reached('/it%27s%20me'))
    app.get('/é', reached('/é'))
    app.get('/x/:id', reached('/x/:id'))
    app.get('/from/:a-:b', reached('/from/:a-:b'))
    app.get(old ? '/files/*' : '/files/*rest', reached('/files/*rest'))
    const mounted = express.Router()
    mounted.get('/login', reached('/m/login'))
    mounted.get('/m', reached('/m/m'))
    app.use('/m', mounted)
    const tenant = express.Router()
    const users = express()
    users.get('/:name', reached('/t/:tenant/users/:name'))
    tenant.use('/:tenant/users', users)
    app.use('/t', tenant)
    app.get('/:any/two', reached('/:any/two'))
    // Many applications mount a router of another kind like this.
    app.use((req, res, next) => {
      if (URL.canParse(req.url, 'http://h') && new URL(req.url, 'http://h').pathname === '/w/login') reached('/w/login')(req, res)
      else next()
    })
    const server = createServer((req, res) => {
      restoreTarget(req)
      app(req, res)
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    try {
      const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES })
      expect(oddly).toBeGreaterThan(50)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  }, 30_000)
})
