import { PassThrough } from 'node:stream'
import type { Throttler } from '@weir/core'
import type { HandlerDecision } from '@weir/core/adapter'
import { type AdapterUnderTest, peekThrice } from '@weir/testing'
import type { FastifyReply, FastifyRequest, default as fastify } from 'fastify'
import { type RouteThrottleOptions, type ThrottleOptions, weir } from '../src/index.ts'

/** The contract's application, in a version of Fastify. */
export function fastifyAdapter(framework: typeof fastify): AdapterUnderTest<FastifyRequest> {
  return {
    routes: 'pattern',
    handlerEnd: true,
    http2: true,
    proxies: true,
    ownLimits: true,
    async start(inputs, { work, http2, proxy, own }) {
      const trustProxy = proxy === 'unix' ? (_address: string, hop: number) => hop === 0 : (proxy ?? false)
      const app = framework({ trustProxy, ...(http2 && ({ http2 } as object)) })
      for (const input of inputs) await app.register(weir, ('check' in input ? { throttler: input } : input) as ThrottleOptions)
      app.get('/', own === undefined ? {} : { config: { throttle: own as RouteThrottleOptions } }, () => 'hello')
      app.get('/context', (request, reply) => {
        const { throttle: decision } = request
        return reply
          .type('application/json')
          .send(JSON.stringify(decision && { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name }))
      })
      app.get('/users/:id', () => 'user')
      app.get('/stream', (request, reply) => {
        const stream = new PassThrough()
        void reply.send(stream)
        for (const piece of ['one', 'two', 'three']) stream.write(piece)
        reporting(request)?.used?.({ tokens: 11 })
        stream.end()
      })
      app.get('/slow', (request, reply) => {
        const stream = new PassThrough()
        void reply.send(stream)
        stream.write('wait')
        reporting(request)?.used?.({ tokens: 4 })
      })
      app.route({
        method: ['GET', 'POST'],
        url: '/status/:code',
        handler: (request, reply) => reply.code(Number((request.params as { code: string }).code)).send('done'),
      })
      app.get('/bytes/:count', (request, reply) => {
        const bytes = Number((request.params as { count: string }).count)
        reply.raw.on('finish', () => {
          if (request.throttle !== null) app.throttler.charge(request.throttle, bytes)
        })
        return reply.send('x'.repeat(bytes))
      })
      app.get('/busy/:milliseconds', async (request, reply) => {
        const began = performance.now()
        await new Promise((resolve) => setTimeout(resolve, Number((request.params as { milliseconds: string }).milliseconds)))
        reply.raw.on('finish', () => {
          if (request.throttle !== null) app.throttler.charge(request.throttle, performance.now() - began)
        })
        return 'done'
      })
      app.get('/work', async () => {
        await work()
        return 'done'
      })
      app.get('/peek', async (request) => JSON.stringify(await peekThrice(() => app.throttle.peek(request))))
      app.get('/throw', () => {
        throw Object.assign(new Error('teapot'), { statusCode: 418 })
      })
      app.setNotFoundHandler({ preHandler: app.throttle() }, (_request, reply) => reply.code(404).send('not found'))
      await app.listen({ port: 0, host: '127.0.0.1' })
      return {
        server: app.server,
        throttlers: [app.throttler as Throttler<string, FastifyRequest>],
        close: async () => {
          app.server.closeAllConnections?.()
          await app.close()
        },
      }
    },
    header: (request, name) => request.headers[name] as string | undefined,
    answering: (text) => (_request: FastifyRequest, reply: FastifyReply) => reply.send(text),
    begun: ([, given], text, last = false) => {
      const reply = given as FastifyReply
      if (!reply.sent) reply.hijack()
      if (last) reply.raw.end(text)
      else reply.raw.write(text)
    },
    status: ([, reply]) => (reply as FastifyReply).statusCode,
  }
}

/** The decision without the policy names that another test declares for the whole program. */
function reporting({ throttle }: FastifyRequest): HandlerDecision<string> | null {
  return throttle as HandlerDecision<string> | null
}
