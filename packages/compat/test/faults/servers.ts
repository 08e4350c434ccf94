import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fastifyRateLimit from '@fastify/rate-limit'
import { serve } from '@hono/node-server'
import { Controller, Get, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import type { Store, Throttler } from '@weir/core'
import { betterAuth } from 'better-auth'
import express, { type Request } from 'express'
import { rateLimit } from 'express-rate-limit'
import { fastify } from 'fastify'
import 'reflect-metadata'
import { betterAuthStorage } from '../../src/better-auth.ts'
import { expressRateLimitStore } from '../../src/express-rate-limit.ts'
import { fastifyRateLimitStore } from '../../src/fastify-rate-limit.ts'
import { nestThrottlerStorage } from '../../src/nestjs-throttler.ts'

/** A server behind a middleware. Its keys are the addresses of `X-Forwarded-For`. */
export interface Limited {
  readonly throttler: Throttler
  /** The status of a response to a client with this address. */
  get(address: string): Promise<number>
  close(): Promise<unknown>
}

type Headers = Readonly<Record<string, unknown>>

/** Milliseconds: ten hours, because the tests last longer than the pause before the end of an hour. */
const HOURS = 36_000_000

/** Servers of the four libraries, with a limit per ten hours. */
export const SERVERS: Readonly<Record<string, (store: Store, limit: number) => Promise<Limited>>> = {
  async 'express-rate-limit'(given, limit) {
    const store = expressRateLimitStore(given)
    const app = express()
    const keyGenerator = ({ headers }: Request) => String(headers['x-forwarded-for'])
    app.use(rateLimit({ windowMs: HOURS, limit, store, keyGenerator, validate: { xForwardedForHeader: false } }))
    app.get('/', (_req, res) => void res.send('hello'))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return limited(server.address() as AddressInfo, store.throttler, () => server.close())
  },
  async '@nestjs/throttler'(given, limit) {
    const storage = nestThrottlerStorage(given)
    class Hello {
      hello(): string {
        return 'hello'
      }
    }
    Get()(Hello.prototype, 'hello', Object.getOwnPropertyDescriptor(Hello.prototype, 'hello') as PropertyDescriptor)
    UseGuards(ThrottlerGuard)(Hello)
    Controller()(Hello)
    const getTracker = async ({ headers }: Record<string, unknown>) => String((headers as Headers)['x-forwarded-for'])
    class App {}
    Module({ imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: HOURS, limit }], storage, getTracker })], controllers: [Hello] })(App)
    const app = await NestFactory.create(App, { logger: false })
    await app.listen(0, '127.0.0.1')
    return limited(app.getHttpServer().address(), storage.throttler, () => app.close())
  },
  async '@fastify/rate-limit'(given, limit) {
    const store = fastifyRateLimitStore(given)
    const app = fastify({ forceCloseConnections: true })
    await app.register(fastifyRateLimit, {
      max: limit,
      timeWindow: HOURS,
      store,
      keyGenerator: ({ headers }) => String(headers['x-forwarded-for']),
    })
    app.get('/', async () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return limited(app.server.address() as AddressInfo, store.throttler, () => app.close())
  },
  async 'better-auth'(given, limit) {
    const customStorage = betterAuthStorage(given)
    const auth = betterAuth({
      baseURL: 'http://127.0.0.1',
      basePath: '/',
      secret: 'a secret of a test, which signs nothing',
      rateLimit: { enabled: true, window: HOURS / 1000, max: limit, customStorage },
    })
    const server = serve({ fetch: auth.handler, port: 0, hostname: '127.0.0.1' })
    await once(server, 'listening')
    return limited(server.address() as AddressInfo, customStorage.throttler, () => server.close(), 'ok')
  },
}

function limited({ port }: AddressInfo, throttler: Throttler, end: () => unknown, path = ''): Limited {
  return {
    throttler,
    async get(address) {
      const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { 'x-forwarded-for': address, connection: 'close' } })
      await response.arrayBuffer()
      return response.status
    },
    async close() {
      await end()
      await throttler.close()
    },
  }
}
