import { once } from 'node:events'
import fs from 'node:fs'
import type { AddressInfo } from 'node:net'
import { ApolloDriver } from '@nestjs/apollo'
import { type ExecutionContext, Module, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { GraphQLModule, Query, ResolveField, Resolver } from '@nestjs/graphql'
import { WsAdapter } from '@nestjs/platform-ws'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { manualClock } from '@weir/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { SkipThrottle, Throttle, ThrottleGuard, ThrottleModule, type ThrottleOptions } from '../src/index.ts'
import 'reflect-metadata'

const TWO = { key: 'route', limit: 2, interval: '1h', clock: manualClock() } as const

let close: (() => Promise<void>) | undefined
afterEach(async () => {
  await close?.()
  close = undefined
})

async function start(module: unknown): Promise<string> {
  const app = await NestFactory.create(module as never, { logger: false, abortOnError: false })
  app.useWebSocketAdapter(new WsAdapter(app))
  await app.listen(0, '127.0.0.1')
  close = () => app.close()
  return `127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`
}

describe('GraphQL', () => {
  const SCHEMA = 'type Cat { name: String, friends: [String] } type Query { cat: Cat, dog: String, free: String }'

  @Resolver('Query')
  class Queries {
    @Query('cat')
    cat() {
      return { name: 'Tom' }
    }
    @Throttle({ limit: 1 })
    @Query('dog')
    dog() {
      return 'Rex'
    }
    @SkipThrottle()
    @Query('free')
    free() {
      return 'yes'
    }
  }

  @Resolver('Cat')
  class Cats {
    @ResolveField('friends')
    friends() {
      return ['Jerry']
    }
  }

  async function ask(options: object) {
    @Module({
      imports: [
        GraphQLModule.forRoot({ driver: ApolloDriver, typeDefs: SCHEMA, playground: false }),
        ThrottleModule.forRoot({ ...TWO, ...options } as ThrottleOptions),
      ],
      providers: [Queries, Cats],
    })
    class App {}
    const host = await start(App)
    return async (query: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`http://${host}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ query }),
      })
      return (await response.json()) as {
        data: unknown
        errors?: { message: string; path: string[]; extensions: Record<string, unknown> }[]
      }
    }
  }

  test('each query and each field that is resolved for itself counts by its name', async () => {
    const query = await ask({ key: 'route' })
    expect(await query('{ cat { name } }')).toEqual({ data: { cat: { name: 'Tom' } } })
    expect(await query('{ cat { name } }')).toEqual({ data: { cat: { name: 'Tom' } } })
    const { data, errors } = await query('{ cat { name } }')
    expect(data).toEqual({ cat: null })
    expect(errors).toMatchObject([{ message: 'Too many requests. Try again in 3600 s.', path: ['cat'] }])
    expect((await query('{ dog }')).errors).toBeUndefined()
  })

  test('aliases don’t get around a limit: each is counted', async () => {
    const query = await ask({ key: 'route' })
    const { data, errors } = await query('{ a: cat { name } b: cat { name } c: cat { name } }')
    expect(Object.values(data as object).filter((cat) => cat !== null)).toHaveLength(2)
    expect(errors).toHaveLength(1)
  })

  test('decorators hold for resolvers as for handlers', async () => {
    const query = await ask({ key: 'route' })
    expect((await query('{ dog }')).data).toEqual({ dog: 'Rex' })
    expect((await query('{ dog }')).data).toEqual({ dog: null })
    for (let i = 0; i < 5; i++) expect((await query('{ free }')).data).toEqual({ free: 'yes' })
  })

  test('the request of HTTP is there for keys', async () => {
    const query = await ask({ key: (context: ExecutionContext) => context.getArgByIndex(2).req.headers['x-user'] })
    const as = async (user: string) => (await query('{ cat { name } }', { 'x-user': user })).errors === undefined
    expect([await as('ann'), await as('ann'), await as('ann'), await as('bob')]).toEqual([true, true, false, true])
    await close?.()
    const byAddress = await ask({ key: 'ip' })
    for (const errors of [0, 0, 1]) expect((await byAddress('{ cat { name } }')).errors ?? []).toHaveLength(errors)
  })
})

describe('WebSockets', () => {
  @WebSocketGateway()
  class Chat {
    @SubscribeMessage('say')
    say() {
      return { event: 'said', data: 'yes' }
    }
    @Throttle({ limit: 1 })
    @SubscribeMessage('shout')
    shout() {
      return { event: 'shouted', data: 'yes' }
    }
    // The guard runs twice for this handler, but counts a message once.
    @UseGuards(ThrottleGuard)
    @SubscribeMessage('sing')
    sing() {
      return { event: 'sung', data: 'yes' }
    }
    @SkipThrottle()
    @SubscribeMessage('ping')
    ping() {
      return { event: 'pong', data: 'yes' }
    }
  }

  async function connect(options: object) {
    @Module({ imports: [ThrottleModule.forRoot({ ...TWO, ...options } as ThrottleOptions)], providers: [Chat] })
    class App {}
    const host = await start(App)
    const socket = new WebSocket(`ws://${host}`)
    await once(socket, 'open')
    return async (event: string) => {
      socket.send(JSON.stringify({ event, data: {} }))
      const [answer] = await once(socket, 'message')
      return JSON.parse(String(answer)) as { event: string; data: unknown }
    }
  }

  test('a rejected message is answered with an exception that says when to try again', async () => {
    const send = await connect({ key: 'ip' })
    expect([(await send('say')).event, (await send('say')).event]).toEqual(['said', 'said'])
    expect(await send('say')).toMatchObject({
      event: 'exception',
      data: { message: 'Too many requests. Try again in 3600 s.', retryAfterMs: 3_600_000 },
    })
  })

  test('a message is rejected as well while the code of its exception can not be loaded, and as ever afterwards', async () => {
    const send = await connect({ key: 'ip' })
    const open = fs.openSync
    const spy = vi.spyOn(fs, 'openSync').mockImplementation((path, ...more) => {
      if (path !== process.execPath) return open(path, ...more)
      throw Object.assign(new Error('EMFILE: too many open files, open'), { code: 'EMFILE' })
    })
    try {
      expect([(await send('say')).event, (await send('say')).event]).toEqual(['said', 'said'])
      expect(await send('say')).toMatchObject({ event: 'exception', data: { status: 'error', message: 'Internal server error' } })
    } finally {
      spy.mockRestore()
    }
    expect(await send('say')).toMatchObject({ event: 'exception', data: { error: 'Too Many Requests' } })
  })

  test('messages count by their name, and decorators hold for them', async () => {
    const send = await connect({ key: 'route' })
    const events = async (...names: string[]) => {
      const found: string[] = []
      for (const name of names) found.push((await send(name)).event)
      return found
    }
    expect(await events('shout', 'shout')).toEqual(['shouted', 'exception'])
    expect(await events('say', 'say', 'say')).toEqual(['said', 'said', 'exception'])
    expect(await events('sing', 'sing', 'sing')).toEqual(['sung', 'sung', 'exception'])
    expect(await events('ping', 'ping', 'ping', 'ping')).toEqual(['pong', 'pong', 'pong', 'pong'])
  })
})
