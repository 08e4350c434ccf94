import type { ServerResponse } from 'node:http'
import { type AdapterUnderTest, peekThrice } from '@weir/testing'
import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { stream } from 'hono/streaming'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { forwardedAddress, type ThrottleOptions, throttle } from '../src/index.ts'
import { type Framework, serve } from './frameworks.ts'

/** The contract's application, in a version of Hono. */
export function honoAdapter(framework: Framework): AdapterUnderTest<Context> {
  return {
    routes: 'pattern',
    handlerEnd: true,
    http2: true,
    proxies: true,
    async start(inputs, { work, http2, proxy }) {
      const app = new framework.Hono()
      const mounted = inputs.map((input) =>
        throttle((proxy === undefined ? input : { ...input, address: forwardedAddress(1) }) as ThrottleOptions),
      )
      for (const middleware of mounted) app.use(middleware)
      const chargeAtEnd = (c: Context, units: () => number) => {
        const decision = c.get('throttle')
        outgoing(c).on('finish', () => {
          if (decision !== undefined) mounted[0]?.throttler.charge(decision, units())
        })
      }
      app.get('/', (c) => c.text('hello'))
      app.get('/context', (c) => {
        const decision = c.get('throttle')
        return c.json(
          decision === undefined ? null : { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name },
        )
      })
      app.get('/users/:id', (c) => c.text('user'))
      app.get('/stream', (c) =>
        stream(c, async (out) => {
          for (const piece of ['one', 'two', 'three']) await out.write(piece)
          c.get('throttle')?.used?.({ tokens: 11 })
        }),
      )
      app.get('/slow', (c) =>
        stream(c, async (out) => {
          await out.write('wait')
          c.get('throttle')?.used?.({ tokens: 4 })
          await new Promise<void>((resolve) => out.onAbort(resolve))
        }),
      )
      app.on(['GET', 'POST'], '/status/:code', (c) => c.text('done', Number(c.req.param('code')) as ContentfulStatusCode))
      app.get('/bytes/:count', (c) => {
        const bytes = Number(c.req.param('count'))
        chargeAtEnd(c, () => bytes)
        return c.text('x'.repeat(bytes))
      })
      app.get('/busy/:milliseconds', async (c) => {
        const began = performance.now()
        chargeAtEnd(c, () => performance.now() - began)
        await new Promise((resolve) => setTimeout(resolve, Number(c.req.param('milliseconds'))))
        return c.text('done')
      })
      app.get('/work', async (c) => {
        await work()
        return c.text('done')
      })
      app.get('/peek', async (c) => c.json(await peekThrice(async () => mounted[0]?.peek(c))))
      app.get('/throw', () => {
        throw new HTTPException(418, { message: 'teapot' })
      })
      const server = await serve(framework, app, { http2 })
      return {
        server,
        throttlers: mounted.map(({ throttler }) => throttler),
        close: () => {
          server.closeAllConnections?.()
          return new Promise((resolve) => void server.close(() => resolve()))
        },
      }
    },
    header: (c, name) => c.req.header(name),
    answering: (text) => (c: Context) => c.text(text),
    begun: ([c], text, last = false) => {
      const response = outgoing(c as Context)
      if (last) response.end(text)
      else response.write(text)
    },
    status: ([c]) => (c as Context).res.status,
  }
}

function outgoing(c: Context): ServerResponse {
  return (c.env as { outgoing: ServerResponse }).outgoing
}
