import { type AdapterUnderTest, peekThrice } from '@weir/testing'
import type { default as express, Request, Response } from 'express'
import { type ThrottleOptions, throttle } from '../src/index.ts'

/** The contract's application, in a version of Express. */
export function expressAdapter(framework: typeof express): AdapterUnderTest<Request> {
  return {
    routes: 'path',
    handlerEnd: false,
    http2: false,
    proxies: true,
    async start(inputs, { work, proxy }) {
      const app = framework()
      if (proxy !== undefined) app.set('trust proxy', proxy === 'unix' ? 1 : 'loopback')
      // Express prints errors in every other environment.
      app.set('env', 'test')
      const mounted = inputs.map((input) => throttle(input as ThrottleOptions))
      for (const middleware of mounted) app.use(middleware)
      app.get('/', (_req, res) => void res.send('hello'))
      app.get('/context', (req, res) => {
        const { throttle: decision } = req
        res.json(
          decision === undefined ? null : { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name },
        )
      })
      app.get('/users/:id', (_req, res) => void res.send('user'))
      app.get('/stream', (req, res) => {
        for (const piece of ['one', 'two', 'three']) res.write(piece)
        req.throttle?.used?.({ tokens: 11 })
        res.end()
      })
      app.get('/slow', (req, res) => {
        res.write('wait')
        req.throttle?.used?.({ tokens: 4 })
      })
      app.all('/status/:code', (req, res) => void res.status(Number(req.params['code'])).send('done'))
      app.get('/bytes/:count', (req, res) => {
        const bytes = Number(req.params['count'])
        res.on('finish', () => {
          if (req.throttle !== undefined) mounted[0]?.throttler.charge(req.throttle, bytes)
        })
        res.send('x'.repeat(bytes))
      })
      app.get('/busy/:milliseconds', (req, res) => {
        const began = performance.now()
        res.on('finish', () => {
          if (req.throttle !== undefined) mounted[0]?.throttler.charge(req.throttle, performance.now() - began)
        })
        setTimeout(() => res.send('done'), Number(req.params['milliseconds']))
      })
      app.get('/work', (_req, res, next) => {
        work().then(() => res.send('done'), next)
      })
      app.get('/peek', (req, res, next) => {
        peekThrice(async () => mounted[0]?.peek(req)).then((peeked) => res.json(peeked), next)
      })
      app.get('/throw', () => {
        throw Object.assign(new Error('teapot'), { status: 418 })
      })
      const server = app.listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      return {
        server,
        throttlers: mounted.map(({ throttler }) => throttler),
        close: () => {
          server.closeAllConnections()
          return new Promise((resolve) => void server.close(() => resolve()))
        },
      }
    },
    header: (req, name) => req.get(name),
    answering: (text) => (_req: Request, res: Response) => res.send(text),
    begun: ([, res], text, last = false) => void (last ? (res as Response).end(text) : (res as Response).write(text)),
    status: ([, res]) => (res as Response).statusCode,
  }
}
