import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import websocket from '@fastify/websocket'
import { manualClock } from '@weir/testing'
import fastify from 'fastify'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { weir } from '../src/index.ts'

/** The first message of a WebSocket, or the response that rejected it. */
async function connect(url: string): Promise<string | IncomingMessage> {
  const socket = new WebSocket(url)
  const answer = await new Promise<string | IncomingMessage>((resolve, reject) => {
    socket.once('message', (data) => resolve(String(data)))
    socket.once('unexpected-response', (_request, response) => resolve(response))
    socket.on('error', reject)
  })
  socket.terminate()
  return answer
}

test('@fastify/websocket: a request to upgrade is counted by its route, and rejected with the fields', async () => {
  const app = fastify()
  await app.register(websocket)
  await app.register(weir, { key: 'route', limit: 2, interval: '1h', clock: manualClock() })
  app.get('/rooms/:id', { websocket: true }, (socket, request) => {
    socket.send(`${request.throttle?.remaining} left`)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const url = `ws://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  try {
    expect(await connect(`${url}/rooms/1`)).toBe('1 left')
    expect(await connect(`${url}/rooms/2`)).toBe('0 left')
    const rejected = (await connect(`${url}/rooms/3`)) as IncomingMessage
    expect(rejected.statusCode).toBe(429)
    expect(rejected.headers).toMatchObject({
      'content-type': expect.stringMatching(/^application\/problem\+json/),
      'retry-after': expect.stringMatching(/^[1-9]\d*$/),
      ratelimit: expect.stringMatching(/^"default";r=0;t=\d+$/),
    })
  } finally {
    await app.close()
  }
})
