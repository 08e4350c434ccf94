import { connect, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { manualClock } from '@weir/testing'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const ONE = { key: 'route', limit: 1, interval: '1h', clock: manualClock() } as const

describe.each(FRAMEWORKS)('%s', (_name, fastify) => {
  test('rejects over HTTP/2, also requests of a method that nobody knows', async () => {
    const app = fastify({ http2: true })
    // The plugin has the types of HTTP/1, as most plugins have.
    await app.register(weir as never, { ...ONE, key: 'route' } as never)
    app.get('/', () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    const client = connect(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
    const send = (method: string) =>
      new Promise<IncomingHttpHeaders & { ':status'?: number }>((resolve, reject) => {
        const request = client.request({ ':path': '/', ':method': method })
        request.on('response', resolve).on('error', reject).resume().end()
      })
    try {
      expect((await send('GET'))[':status']).toBe(200)
      const rejected = await send('GET')
      expect(rejected[':status']).toBe(429)
      expect(rejected['retry-after']).toMatch(/^\d+$/)
      expect(rejected['ratelimit']).toMatch(/^"default";r=0;t=\d+$/)
      expect((await send('HEAD'))[':status']).toBe(429)
    } finally {
      client.close()
      await app.close()
    }
  })

  test('rejects over a socket that supertest opens', async () => {
    const app = fastify()
    await app.register(weir, ONE)
    app.get('/', () => 'hello')
    await app.ready()
    await supertest(app.server).get('/').expect(200, 'hello')
    await supertest(app.server)
      .get('/')
      .expect(429)
      .expect('Content-Type', /problem\+json/)
      .expect('Retry-After', /\d/)
    await app.close()
  })
})
