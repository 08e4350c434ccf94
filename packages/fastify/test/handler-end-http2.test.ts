import { connect, constants } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { concurrency } from '@weir/core'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { describe, expect, test, vi } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ONE = { key: 'all', limit: 1, algorithm: concurrency(), coordination: 'local' } as const
const PATIENT = { timeout: 10_000, interval: 5 }

/** Handlers by their behaviour at the beginning and after their client has left. */
const HANDLERS: Readonly<Record<string, (gone: Promise<void>, reply: FastifyReply) => unknown>> = {
  'that is async and returns its answer': async (gone) => {
    await gone
    return 'done'
  },
  'that is async and returns its reply, sent': async (gone, reply) => {
    await gone
    return reply.send('done')
  },
  'that is async and returns its reply without an answer': async (gone, reply) => {
    await gone
    return reply
  },
  'that is async and returns its reply, whose raw response it has ended': async (gone, reply) => {
    await gone
    reply.raw.end('done')
    return reply
  },
  'that sends later': (gone, reply) => void gone.then(() => reply.send('done')),
  'that ends its raw response later': (gone, reply) => void gone.then(() => reply.raw.end('done')),
  'that writes into its raw response later': (gone, reply) => void gone.then(() => reply.raw.write('a piece')),
  'that hijacks its reply later': (gone, reply) => void gone.then(() => reply.hijack()),
}

describe.each(FRAMEWORKS)('%s, HTTP/2', (_name, fastify) => {
  test.each(Object.entries(HANDLERS))('keeps the slot of a handler %s, until it has ended', async (_title, handler) => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    let begun = false
    let closed = false
    const app = fastify({ http2: true } as object) as unknown as FastifyInstance
    await app.register(weir, ONE)
    app.get('/', (_request, reply) => {
      begun = true
      reply.raw.once('close', () => (closed = true))
      return handler(gone, reply) as never
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const session = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
    try {
      const request = session.request({ ':path': '/' }).on('error', () => {})
      await vi.waitFor(() => expect(begun).toBe(true), PATIENT)
      request.close(constants.NGHTTP2_CANCEL)
      await vi.waitFor(() => expect(closed).toBe(true), PATIENT)
      expect(app.throttler.peek('all').remaining).toBe(0)
      go()
      await vi.waitFor(() => expect(app.throttler.peek('all').remaining).toBe(1), PATIENT)
    } finally {
      go()
      session.destroy()
      await app.close()
    }
  })
})
