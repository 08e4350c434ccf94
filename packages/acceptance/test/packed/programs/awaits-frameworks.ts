import 'reflect-metadata'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type ExecutionContext, type HttpException, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { betterAuthStorage } from '@weir/compat/better-auth'
import { expressRateLimitStore } from '@weir/compat/express-rate-limit'
import { nestThrottlerStorage } from '@weir/compat/nestjs-throttler'
import { createThrottler } from '@weir/core'
import { dashboard } from '@weir/dashboard/fastify'
import { weir } from '@weir/fastify'
import { throttle } from '@weir/hono'
import { ThrottleGuard, ThrottleModule } from '@weir/nestjs'
import { peekThrice } from '@weir/testing'
import { awaitOne, type Case } from '@weir/testing/store-tests/awaited'
import { throttle as throttleWeb } from '@weir/web'
import fastify from 'fastify'
import { Hono } from 'hono'
import { HELD, HUNG } from './hung-store.ts'

/** An execution context as the framework makes it, but without a listening server. */
function contextOf(handler: () => void): ExecutionContext {
  const request = new IncomingMessage(new Socket())
  const response = Object.assign(new ServerResponse(request), { header: () => {} })
  const http = { getRequest: () => request, getResponse: () => response }
  return {
    getType: () => 'http',
    getHandler: () => handler,
    getClass: () => Object,
    switchToHttp: () => http,
  } as unknown as ExecutionContext
}

/** Cases with frameworks. They are in their own program, because each process needs a second to load the frameworks. */
const FRAMEWORKS: readonly [string, Case][] = [
  [
    'hono',
    async () => {
      const middleware = throttle({ ...HELD, store: HUNG })
      const app = new Hono().use(async (c, next) => {
        await peekThrice(() => middleware.peek(c))
        await next()
      }, middleware)
      return (await app.request('/')).status
    },
  ],
  [
    'web',
    async () => {
      const limit = throttleWeb({ ...HELD, store: HUNG })
      await peekThrice(() => limit.peek(new Request('http://localhost/')))
      const rejection = await limit.rejection(new Request('http://localhost/'))
      const { status } = await limit(() => new Response())(new Request('http://localhost/'))
      return `${rejection?.status} ${status}`
    },
  ],
  [
    'fastify',
    async () => {
      const app = fastify()
      await app.register(weir, { ...HELD, store: HUNG, closeTimeout: 300 })
      app.get('/', () => 'hello')
      await app.ready()
      const { statusCode } = await app.inject('/')
      await app.close()
      return statusCode
    },
  ],
  [
    'the dashboard in fastify',
    async () => {
      const app = fastify()
      const throttler = createThrottler({ policies: [HELD], store: HUNG, closeTimeout: 300 })
      await app.register(dashboard, { prefix: '/weir', throttler: throttler as never, authorize: async () => true })
      await app.ready()
      await app.close()
      await throttler.close()
      return 'closed'
    },
  ],
  [
    'nestjs',
    async () => {
      class AppModule {}
      Module({ imports: [ThrottleModule.forRootAsync({ useFactory: async () => ({ ...HELD, store: HUNG, closeTimeout: 300 }) })] })(
        AppModule,
      )
      const app = await NestFactory.createApplicationContext(AppModule, { logger: false })
      const guard = app.get(ThrottleGuard)
      await guard.peek(contextOf(() => {}))
      const outcome = await (async () => guard.canActivate(contextOf(() => {})))().catch((error: HttpException) => error.getStatus())
      await app.close()
      return outcome
    },
  ],
  [
    'stores of other libraries',
    async () => {
      const store = expressRateLimitStore(HUNG)
      store.init({ windowMs: 3_600_000, limit: 2 })
      store.increment('a')
      const { totalHits } = (await store.get('a')) ?? {}
      const { allowed } = await betterAuthStorage(HUNG).consume('a', { window: 3_600, max: 2 })
      await nestThrottlerStorage(HUNG).onApplicationShutdown()
      await store.shutdown()
      return `${totalHits} ${allowed}`
    },
  ],
]
await awaitOne(() => ({ store: HUNG }), new Map(FRAMEWORKS))
