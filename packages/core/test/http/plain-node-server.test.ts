import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test, vi } from 'vitest'
import { createGuard, type Guard, nodeReader, type ThrottleInput, upgradeRejection } from '../../src/http/adapter.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { ManualTime } from './manual-time.ts'

type Args = readonly [request: IncomingMessage, response: ServerResponse]

/** A whole adapter in a few lines, as in the quick start for plain `node:http`. */
function throttled(
  input: ThrottleInput<IncomingMessage, Args>,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): { guard: Guard<IncomingMessage, Args>; listener: (request: IncomingMessage, response: ServerResponse) => Promise<void> } {
  const guard = createGuard<IncomingMessage, Args>(input, nodeReader)
  const set = (response: ServerResponse, name: string, value: string) => void response.setHeader(name, value)
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const decision = await guard.check(request)
    if (decision === undefined) return handle(request, response)
    if (decision.allowed) {
      guard.writeHeaders(decision, response, set)
      guard.watch(decision, response, [request, response])
      return handle(request, response)
    }
    const rejection = await guard.reject(request, decision)
    if ((await guard.handle(rejection, [request, response], response)) !== 'failed') return
    response.writeHead(rejection.status, { ...rejection.headers, 'Content-Type': rejection.type }).end(rejection.body)
  }
  return { guard, listener }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a plain node:http server is throttled by an adapter of twenty lines', async () => {
  const { listener } = throttled(
    { limit: 2, interval: '1h', key: 'ip', clock: new ManualTime(0) },
    (_request, response) => void response.end('hello'),
  )
  const server = createServer(listener)
  const url = await listen(server)
  try {
    expect((await fetch(url)).headers.get('ratelimit')).toMatch(/^"default";r=1;t=\d+$/)
    expect(await (await fetch(`${url}/other`)).text()).toBe('hello')
    const rejected = await fetch(url)
    expect(rejected.status).toBe(429)
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await rejected.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a plain node:http server reserves an estimate, and settles it when the client has left in the middle of a stream', async () => {
  const seen: string[] = []
  const { guard, listener } = throttled(
    {
      name: 'tokens',
      limit: 1_000,
      interval: '1h',
      key: 'all',
      clock: new ManualTime(0),
      estimate: async () => ({ tokens: 600 }),
      settle: ({ url }, { writableFinished }) => {
        seen.push(`${url} ${writableFinished ? 'finished' : 'cut off'}`)
        return writableFinished ? { tokens: 10 } : undefined
      },
    },
    ({ url }, response) => void (url === '/whole' ? response.end('hello') : response.write('a piece')),
  )
  const server = createServer(listener)
  const url = await listen(server)
  try {
    await (await fetch(`${url}/whole`)).text()
    await vi.waitFor(() => expect(guard.throttler.peek('all').remaining).toBe(990))
    const sent = request(`${url}/cut`).end()
    await new Promise((resolve) => sent.once('response', (response) => response.once('data', resolve)))
    expect(guard.throttler.peek('all').remaining).toBe(390)
    sent.on('error', () => {}).destroy()
    await vi.waitFor(() => expect(seen).toEqual(['/whole finished', '/cut cut off']))
    expect(guard.throttler.peek('all').remaining).toBe(390)
    expect(guard.side.inspected.limiters[0]?.stats.reservations).toMatchObject({ open: 0, settled: 2, expired: 0 })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('long header values are keys like any other, of which little is kept; those of a megabyte are none', async () => {
  const { guard, listener } = throttled(
    { limit: 2, interval: '1h', key: { header: 'x-key' }, clock: new ManualTime(0) },
    (_request, response) => void response.end('hello'),
  )
  const server = createServer({ maxHeaderSize: 8 * 2 ** 20 }, listener)
  const url = await listen(server)
  const send = (value: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { headers: { 'x-key': value, accept: value, 'x-forwarded-for': value } }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
      sent.on('error', reject).end()
    })
  try {
    const long = 'x'.repeat(4_000)
    const statuses: (number | undefined)[] = []
    for (const value of [long, long, `${long}y`, long, `${long}y`, `${long}y`, `y${long}`]) statuses.push(await send(value))
    expect(statuses).toEqual([200, 200, 200, 429, 200, 429, 200])
    // All values of a megabyte share the counter of their address.
    const huge = 'x'.repeat(2 ** 20)
    expect([await send(huge), await send(`${huge}y`), await send(`y${huge}`)]).toEqual([200, 200, 429])
    const keys = snapshot(guard.throttler).top
    expect(keys.length).toBe(4)
    expect(Math.max(...keys.map(({ key }) => key.length))).toBeLessThan(300)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a request to upgrade is rejected on its bare socket', async () => {
  const { guard } = throttled({ key: 'route', limit: 1, interval: '1h', name: 'sockets', clock: new ManualTime(0) }, () => {})
  const server = createServer()
  server.on('upgrade', async (req: IncomingMessage, socket) => {
    const decision = await guard.check(req)
    if (decision?.allowed !== false) socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
    else socket.end(upgradeRejection(await guard.reject(req, decision)))
  })
  const url = await listen(server)
  const upgrade = (accept: string) =>
    new Promise<[status: number | undefined, type: string | undefined, body: string]>((resolve, reject) => {
      const sent = request(url, { headers: { Connection: 'Upgrade', Upgrade: 'x', Accept: accept } })
      sent.on('error', reject)
      sent.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve([response.statusCode, undefined, ''])
      })
      sent.on('response', async (response) => {
        let body = ''
        for await (const piece of response) body += String(piece)
        expect(Number(response.headers['retry-after'])).toBeGreaterThanOrEqual(1)
        resolve([response.statusCode, response.headers['content-type'], body])
      })
      sent.end()
    })
  try {
    expect(await upgrade('*/*')).toEqual([101, undefined, ''])
    expect(await upgrade('*/*')).toEqual([429, 'application/problem+json', expect.stringContaining('"violated-policies":["sockets"]')])
    expect(await upgrade('text/plain')).toEqual([429, 'text/plain; charset=utf-8', expect.stringMatching(/^Too many requests/)])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
