import { createServer, type Server } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import { type AdapterUnderTest, peekThrice } from '@weir/testing'
import type Koa from 'koa'
import { type ThrottleOptions, throttle } from '../src/index.ts'

/** The contract's application, in a version of Koa. */
export function koaAdapter(Framework: typeof Koa, withRouter: boolean): AdapterUnderTest<Koa.Context> {
  return {
    routes: withRouter ? 'pattern' : 'path',
    handlerEnd: true,
    http2: true,
    proxies: true,
    async start(inputs, { work, http2, proxy }) {
      const app = new Framework(proxy === undefined ? {} : { proxy: true, maxIpsCount: 1 })
      app.silent = true
      const router = new Router()
      // A shared throttler is the whole input, so it has no place for a router unless it is wrapped.
      const own = (input: object) =>
        withRouter && !('check' in input) ? { ...input, router } : withRouter ? { throttler: input, router } : input
      const mounted = inputs.map((input) => throttle(own(input) as ThrottleOptions))
      for (const middleware of mounted) app.use(middleware)
      router.get('/', (ctx) => {
        ctx.body = 'hello'
      })
      router.get('/context', (ctx) => {
        const decision = ctx.state['throttle']
        ctx.body = JSON.stringify(
          decision === undefined ? null : { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name },
        )
      })
      router.get('/users/:id', (ctx) => {
        ctx.body = 'user'
      })
      router.get('/stream', (ctx) => {
        const stream = new PassThrough()
        ctx.body = stream
        for (const piece of ['one', 'two', 'three']) stream.write(piece)
        ctx.state.throttle?.used?.({ tokens: 11 })
        stream.end()
      })
      router.get('/slow', (ctx) => {
        const stream = new PassThrough()
        ctx.body = stream
        stream.write('wait')
        ctx.state.throttle?.used?.({ tokens: 4 })
      })
      router.all('/status/:code', (ctx) => {
        ctx.status = Number(ctx['params'].code)
        ctx.body = 'done'
      })
      router.get('/bytes/:count', (ctx) => {
        const bytes = Number(ctx['params'].count)
        const decision = ctx.state['throttle']
        ctx.res.on('finish', () => {
          if (decision !== undefined) mounted[0]?.throttler.charge(decision, bytes)
        })
        ctx.body = 'x'.repeat(bytes)
      })
      router.get('/busy/:milliseconds', async (ctx) => {
        const began = performance.now()
        const decision = ctx.state['throttle']
        ctx.res.on('finish', () => {
          if (decision !== undefined) mounted[0]?.throttler.charge(decision, performance.now() - began)
        })
        await new Promise((resolve) => setTimeout(resolve, Number(ctx['params'].milliseconds)))
        ctx.body = 'done'
      })
      router.get('/work', async (ctx) => {
        await work()
        ctx.body = 'done'
      })
      router.get('/peek', async (ctx) => {
        ctx.body = JSON.stringify(await peekThrice(async () => mounted[0]?.peek(ctx)))
      })
      router.get('/throw', (ctx) => ctx.throw(418, 'teapot'))
      app.use(router.routes())
      const server = http2 ? (createHttp2Server(app.callback()) as unknown as Server) : createServer(app.callback())
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      return {
        server,
        throttlers: mounted.map(({ throttler }) => throttler),
        close: () => {
          server.closeAllConnections?.()
          return new Promise((resolve) => void server.close(() => resolve()))
        },
      }
    },
    header: (ctx, name) => ctx.get(name) || undefined,
    answering: (text) => (ctx: Koa.Context) => {
      ctx.body = text
    },
    begun: ([ctx], text, last = false) => {
      const { res } = ctx as Koa.Context
      ;(ctx as Koa.Context).respond = false
      if (last) res.end(text)
      else res.write(text)
    },
    status: ([ctx]) => (ctx as Koa.Context).status,
  }
}
