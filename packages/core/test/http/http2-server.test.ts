import { once } from 'node:events'
import { connect, constants, createServer, type Http2ServerRequest, type Http2ServerResponse, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createGuard, headerValue, type RequestReader } from '../../src/http/adapter.ts'
import { ManualTime } from './manual-time.ts'

type Args = readonly [request: Http2ServerRequest, response: Http2ServerResponse]

const http2Reader: RequestReader<Http2ServerRequest> = {
  method: (request) => request.method,
  path: (request) => request.url,
  route: () => undefined,
  ip: (request) => request.socket.remoteAddress,
  header: (request, name) => headerValue(request.headers[name]),
}

test('a server of node:http2 is throttled, and a stream that is reset counts as failed', async () => {
  const options = { limit: 3, interval: '1h', key: 'ip', skipFailedRequests: true, clock: new ManualTime(0) } as const
  const guard = createGuard<Http2ServerRequest, Args>(options, http2Reader)
  const server = createServer(async (request, response) => {
    const decision = await guard.check(request)
    if (decision === undefined) throw new Error('the policy applies to all')
    if (decision.allowed) {
      guard.writeHeaders(decision, response, (to, name, value) => to.setHeader(name, value))
      guard.watch(decision, response, [request, response])
      if (request.url === '/slow') response.write('wait')
      else response.end('hello')
      return
    }
    const rejection = await guard.reject(request, decision)
    response.writeHead(rejection.status, { ...rejection.headers, 'Content-Type': rejection.type }).end(rejection.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const get = async (path: string) => {
    const stream = client.request({ ':path': path })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    let body = ''
    for await (const piece of stream) body += String(piece)
    return { headers, body }
  }
  const left = () => guard.throttler.peek('127.0.0.1').remaining
  try {
    const first = await get('/')
    expect(first).toMatchObject({ body: 'hello', headers: { ':status': 200, ratelimit: expect.stringMatching(/^"default";r=2;/) } })

    const slow = client.request({ ':path': '/slow' })
    await once(slow, 'data')
    expect(left()).toBe(1)
    slow.close(constants.NGHTTP2_CANCEL)
    await expect.poll(left).toBe(2)

    for (const path of ['/a', '/b']) expect((await get(path)).headers[':status']).toBe(200)
    const rejected = await get('/c')
    expect(rejected.headers).toMatchObject({ ':status': 429, 'retry-after': expect.any(String), 'cache-control': 'no-store' })
    expect(rejected.body).toContain('quota-exceeded')
  } finally {
    client.destroy()
    server.close()
    await guard.throttler.close()
  }
})

test('a stream that is reset while its request is held is not answered, and gives back what it took', async () => {
  const clock = new ManualTime(0)
  const policies = [
    { name: 'wait', limit: 1, interval: '1s', delay: '5s', key: 'ip', coordination: 'local' },
    { name: 'slow', limit: 1, interval: '1h', delay: () => 500, key: 'ip', coordination: 'local' },
    { name: 'hour', limit: 9, interval: '1h', key: 'ip', coordination: 'local' },
  ] as const
  const guard = createGuard<Http2ServerRequest, Args>({ policies, clock }, http2Reader)
  const answers: unknown[] = []
  const server = createServer(async (request, response) => {
    const decision = await guard.check(request, undefined, response)
    answers.push(decision?.allowed ?? decision)
    if (decision?.allowed === true) response.end('hello')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const left = () => guard.throttler.peek('127.0.0.1').parts[2]?.remaining
  try {
    const first = client.request({ ':path': '/' })
    await once(first, 'response')
    const second = client.request({ ':path': '/' })
    second.on('error', () => {})
    await expect.poll(left).toBe(7)
    await expect.poll(() => guard.throttler.waiting).toBeGreaterThan(0)
    second.close(constants.NGHTTP2_CANCEL)
    await expect.poll(left).toBe(8)
    await expect.poll(() => answers).toEqual([true, null])
    expect(guard.throttler.waiting).toBe(0)

    const third = client.request({ ':path': '/' })
    await expect.poll(left).toBe(7)
    await expect.poll(() => guard.throttler.waiting).toBeGreaterThan(0)
    clock.advance(1_001)
    const [headers] = (await once(third, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(200)
  } finally {
    client.destroy()
    server.close()
    await guard.throttler.close()
  }
})
