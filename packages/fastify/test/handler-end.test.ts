import type { AddressInfo } from 'node:net'
import { concurrency } from '@weir/core'
import { leave, open } from '@weir/tooling/leaving-client'
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { describe, expect, test, vi } from 'vitest'
import { type ThrottleFunction, weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ONE = { key: 'all', limit: 1, algorithm: concurrency(), coordination: 'local' } as const
const PATIENT = { timeout: 10_000, interval: 5 }

/** Handlers by their behaviour at the beginning and once they may continue. Only then their slot is free again. */
const HANDLERS: Readonly<Record<string, (go: Promise<void>, reply: FastifyReply) => unknown>> = {
  'that is async': async (go) => {
    await go
    return 'done'
  },
  'that is async and rejects': async (go) => {
    await go
    throw Object.assign(new Error('teapot'), { statusCode: 418 })
  },
  'that is async and returns nothing once its client has left': async (go) => void (await go),
  'that sends later': (go, reply) => void go.then(() => reply.send('done')),
  'that redirects later': (go, reply) => void go.then(() => reply.redirect('/')),
  'that returns its reply and sends later': (go, reply) => {
    void go.then(() => reply.send('done'))
    return reply
  },
  'that is async and returns its reply once its client has left': async (go, reply) => {
    await go
    return reply
  },
  // biome-ignore lint/suspicious/noThenProperty: such as a query that is yet to be made
  'that returns a thenable, which resolves with nothing': (go) => ({ then: go.then.bind(go) }),
  'that ends its raw response later': (go, reply) => void go.then(() => reply.raw.end('done')),
  'that writes into its raw response later, and goes on': (go, reply) => void go.then(() => reply.raw.write('a piece')),
  'that writes a raw head later, and goes on': (go, reply) => void go.then(() => reply.raw.writeHead(200)),
  'that destroys its raw response later': (go, reply) => void go.then(() => reply.raw.destroy()),
  'that hijacks its reply later': (go, reply) => void go.then(() => reply.hijack()),
  'that sends at once and works on': async (go, reply) => {
    void reply.send('done')
    await go
  },
  'that hijacks its reply and works on': async (go, reply) => {
    reply.hijack()
    reply.raw.write('a piece')
    await go
    reply.raw.end()
  },
}

/** Handlers whose slot is free as soon as the response has ended, or its connection has closed. */
const UNREPORTED: Readonly<Record<string, (reply: FastifyReply) => unknown>> = {
  'that hijacks its reply and returns': (reply) => {
    reply.hijack()
    reply.raw.write('a piece')
  },
  'that hijacks its reply after it has returned': (reply) => {
    setImmediate(() => reply.hijack().raw.write('a piece'))
  },
  'that ends its raw response': (reply) => void reply.raw.end('done'),
  'that ends its raw response after it has returned': (reply) => void setImmediate(() => reply.raw.end('done')),
  'that returns its reply and ends its raw response': (reply) => {
    setImmediate(() => reply.raw.end('done'))
    return reply
  },
  'that streams by its raw response': (reply) => void reply.raw.writeHead(200).write('a piece'),
  'that streams by its raw response after it has returned': (reply) => void setImmediate(() => reply.raw.write('a piece')),
  'that writes its raw head after it has returned': (reply) => void setImmediate(() => reply.raw.flushHeaders()),
  'that throws': () => {
    throw Object.assign(new Error('teapot'), { statusCode: 418 })
  },
  'that has sent': (reply) => void reply.send('done'),
}

describe.each(FRAMEWORKS)('%s', (_name, fastify) => {
  /** Starts an application with a route. `begun` counts the calls of its handler, and `free` its free slots. */
  async function start(
    handler: (request: FastifyRequest, reply: FastifyReply) => unknown,
    route: object = {},
    options: object = ONE,
    prepare: (app: FastifyInstance) => void = () => {},
  ) {
    const app = fastify()
    let begun = 0
    let closed = false
    await app.register(weir, options as never)
    app.addHook('onRequest', (_request, reply, done) => {
      reply.raw.once('close', () => (closed = true))
      done()
    })
    prepare(app as unknown as FastifyInstance)
    const counted = (request: FastifyRequest, reply: FastifyReply) => {
      begun++
      return handler(request, reply)
    }
    app.route({ method: 'GET', url: '/', ...route, handler: counted as never })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return {
      app,
      port: (app.server.address() as AddressInfo).port,
      begun: () => begun,
      closed: () => closed,
      free: () => app.throttler.peek('all').remaining,
      close: async () => {
        app.server.closeAllConnections()
        await app.close()
      },
    }
  }

  test.each(Object.entries(HANDLERS))('keeps the slot of a handler %s, until it has ended', async (_title, handler) => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    const server = await start((_request, reply) => handler(gone, reply))
    try {
      const client = open(server.port)
      await vi.waitFor(() => expect(server.begun()).toBe(1), PATIENT)
      await leave(client, server)
      expect(server.free()).toBe(0)
      go()
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
    } finally {
      go()
      await server.close()
    }
  })

  test.each(Object.entries(UNREPORTED))('frees the slot of a handler %s, once its response has ended', async (_title, handler) => {
    const server = await start((_request, reply) => handler(reply))
    try {
      const client = open(server.port)
      await new Promise((resolve) => client.once('response', resolve))
      client.destroy()
      await vi.waitFor(() => expect(server.free()).toBe(1), PATIENT)
    } finally {
      await server.close()
    }
  })

  test('starts no handler, and keeps no slot, for a client that leaves while a later hook works', async () => {
    let done: HookHandlerDoneFunction | undefined
    const server = await start(() => 'done', {
      preHandler: (_request: FastifyRequest, _reply: FastifyReply, next: HookHandlerDoneFunction) =>
        done === undefined ? (done = next) : next(),
    })
    try {
      const client = open(server.port)
      await vi.waitFor(() => expect(done).toBeDefined(), PATIENT)
      expect(server.free()).toBe(0)
      await leave(client, server)
      expect(server.free()).toBe(1)
      done?.()
      expect((await server.app.inject('/')).statusCode).toBe(200)
      expect(server.begun()).toBe(1)
    } finally {
      await server.close()
    }
  })

  test('keeps the slots of a place beside those of the plugin', async () => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    const place = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => placed?.(request, reply, done)
    let placed: ThrottleFunction | undefined
    const server = await start(
      () => gone,
      { preHandler: place },
      { ...ONE, name: 'app' },
      (app) => {
        placed = app.throttle({ ...ONE, name: 'place' })
      },
    )
    const free = () => server.app.throttler.peek('all').parts.map(({ remaining }) => remaining)
    try {
      const client = open(server.port)
      await vi.waitFor(() => expect(server.begun()).toBe(1), PATIENT)
      await leave(client, server)
      expect(free()).toEqual([0, 0])
      go()
      await vi.waitFor(() => expect(free()).toEqual([1, 1]), PATIENT)
    } finally {
      go()
      await server.close()
    }
  })

  test('HEAD shares the limit of its GET route although handlers are wrapped', async () => {
    const server = await start(
      () => 'hello',
      { config: { throttle: { limit: 1, interval: '1h', key: 'all' } } },
      { limit: 9, interval: '1h', key: 'all' },
    )
    try {
      expect((await server.app.inject({ method: 'HEAD', url: '/' })).statusCode).toBe(200)
      expect((await server.app.inject('/')).statusCode).toBe(429)
    } finally {
      await server.close()
    }
  })
})
