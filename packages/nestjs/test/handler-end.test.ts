import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, constants } from 'node:http2'
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  Res,
  Sse,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { concurrency, type Throttler } from '@weir/core'
import { leave, open } from '@weir/tooling/leaving-client'
import { NEVER, Observable, startWith, timeout } from 'rxjs'
import { describe, expect, test, vi } from 'vitest'
import { Throttle, ThrottleModule, type ThrottleOptions } from '../src/index.ts'
import { ThrottleLimits } from '../src/limits.ts'
import { type ResponseLike, rawOf } from '../src/transport.ts'
import { PLATFORMS, type Platform } from './platforms.ts'

const ONE = { name: 'flight', key: 'all', limit: 1, algorithm: concurrency(), coordination: 'local' } as const
const RATE = { name: 'rate', key: 'all', limit: 99, interval: '1h', coordination: 'local' } as const
const PATIENT = { timeout: 10_000, interval: 5 }

async function startOn({ adapter }: Platform, controller: object, options: object, http2 = false) {
  @Module({ imports: [ThrottleModule.forRoot(options as ThrottleOptions)], controllers: [controller as never] })
  class App {}
  const app: INestApplication = await NestFactory.create(App, adapter({ http2 }), { logger: false, abortOnError: false })
  let closed = false
  await app.listen(0, '127.0.0.1')
  app.getHttpServer().prependListener('request', (_request: unknown, response: NodeJS.EventEmitter) => {
    response.once('close', () => (closed = true))
  })
  const throttler: Throttler<string, never> = app.get(ThrottleLimits, { strict: false }).throttler
  return {
    app,
    port: app.getHttpServer().address().port as number,
    closed: () => closed,
    free: () => throttler.peek('all').parts.find(({ policy }) => policy?.name === 'flight')?.remaining,
    close: async () => {
      app.getHttpServer().closeAllConnections?.()
      await app.close()
    },
  }
}

describe.each(PLATFORMS)('on $name', (platform) => {
  const start = (controller: object, options: object) => startOn(platform, controller, options)

  test.each(['a promise', 'an error'])('keeps the slot of a handler with %s, by its own decorator', async (kind) => {
    let begun = 0
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    const result = () => (kind === 'an error' ? gone.then(() => Promise.reject(new Error('It failed.'))) : gone)
    @Controller()
    class Routes {
      @Throttle(ONE)
      @Get()
      work() {
        begun++
        return result()
      }
    }
    const server = await start(Routes, RATE)
    try {
      const client = open(server.port)
      await vi.waitFor(() => expect(begun).toBe(1), PATIENT)
      await leave(client, server)
      expect(server.free()).toBe(0)
      go()
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
    } finally {
      go()
      await server.close()
    }
  })

  test('starts no handler, and keeps no slot, for a client that leaves while a later guard works', async () => {
    const answers: ((passes: boolean) => void)[] = []
    let begun = 0
    @Injectable()
    class Slow implements CanActivate {
      canActivate(): Promise<boolean> {
        return new Promise((resolve) => answers.push(resolve))
      }
    }
    @Controller()
    @UseGuards(Slow)
    class Routes {
      @Get()
      work() {
        begun++
        return 'done'
      }
    }
    const server = await start(Routes, ONE)
    try {
      const client = open(server.port)
      await vi.waitFor(() => expect(answers.length).toBe(1), PATIENT)
      expect(server.free()).toBe(0)
      await leave(client, server)
      expect(server.free()).toBe(1)
      answers[0]?.(true)
      const answer = fetch(`http://127.0.0.1:${server.port}`)
      await vi.waitFor(() => expect(answers.length).toBe(2), PATIENT)
      answers[1]?.(true)
      expect((await answer).status).toBe(200)
      expect(begun).toBe(1)
    } finally {
      await server.close()
    }
  })

  test('frees the slot of server-sent events once their client has left', async () => {
    let ended = 0
    @Controller()
    class Routes {
      @Sse()
      events() {
        return new Observable<{ data: string }>((subscriber) => {
          const subscription = NEVER.pipe(startWith({ data: 'one' })).subscribe(subscriber)
          return () => {
            ended++
            subscription.unsubscribe()
          }
        })
      }
    }
    const server = await start(Routes, ONE)
    try {
      const client = open(server.port)
      await new Promise((resolve) => client.once('response', resolve))
      expect(server.free()).toBe(0)
      client.destroy()
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
      expect(ended).toBe(1)
    } finally {
      await server.close()
    }
  })

  test('frees the slot of a handler for which an interceptor no longer waits, though its promise is pending', async () => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    let ended = false
    @Controller()
    @UseInterceptors({ intercept: (_context: ExecutionContext, next: CallHandler) => next.handle().pipe(timeout(5)) })
    class Routes {
      @Get()
      async work() {
        await gone
        ended = true
      }
    }
    const server = await start(Routes, ONE)
    try {
      expect((await fetch(`http://127.0.0.1:${server.port}`)).status).toBe(500)
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
      expect(ended).toBe(false)
    } finally {
      go()
      await server.close()
    }
  })

  const RAW: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'ends it': (response) => response.end('done'),
    'ends it after it has returned': (response) => void setImmediate(() => response.end('done')),
    'streams until its client leaves': (response) => void response.writeHead(200).write('a piece'),
    'streams after it has returned': (response) => void setImmediate(() => response.write('a piece')),
  }

  test.each(Object.entries(RAW))('frees the slot of a handler with @Res() that %s, once the response has ended', async (_title, answer) => {
    @Controller()
    class Routes {
      @Get()
      work(@Res() response: ResponseLike) {
        answer(rawOf(response))
      }
    }
    const server = await start(Routes, ONE)
    try {
      const client = open(server.port)
      await new Promise((resolve) => client.once('response', resolve))
      client.destroy()
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
    } finally {
      await server.close()
    }
  })

  test('adds no interceptor to an application without slots', async () => {
    @Controller()
    class Routes {
      @Get()
      work() {
        return 'done'
      }
    }
    const interceptorsOf = async (options: object) => {
      const { app, close } = await start(Routes, options)
      const { config } = app as unknown as { config: { getGlobalInterceptors(): readonly unknown[] } }
      await close()
      return config.getGlobalInterceptors().filter((one) => one !== undefined).length
    }
    expect(await interceptorsOf(RATE)).toBe(0)
    expect(await interceptorsOf({ policies: [RATE, ONE] })).toBe(1)
  })
})

test('on Fastify, over HTTP/2: frees the slot of a handler that returns its reply once its client has left', async () => {
  let go = () => {}
  const gone = new Promise<void>((resolve) => (go = resolve))
  let response: ServerResponse | undefined
  @Controller()
  class Routes {
    @Get()
    async work(@Res() reply: ResponseLike & { send(answer: string): unknown }) {
      response = rawOf(reply)
      await gone
      return reply.send('done')
    }
  }
  const server = await startOn(PLATFORMS.find(({ http2 }) => http2) as Platform, Routes, ONE, true)
  const session = connect(`http://127.0.0.1:${server.port}`)
  try {
    const client = session.request({ ':path': '/' }).on('error', () => {})
    await vi.waitFor(() => expect(response).toBeDefined(), PATIENT)
    const closed = once(response as ServerResponse, 'close')
    client.close(constants.NGHTTP2_CANCEL)
    await closed
    expect(server.free()).toBe(0)
    go()
    await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
  } finally {
    go()
    session.destroy()
    await server.close()
  }
})
