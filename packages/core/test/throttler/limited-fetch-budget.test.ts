import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  concurrency,
  createThrottler,
  type LimitedFetchOptions,
  limitedFetch,
  memoryStore,
  type Throttler,
  usageOf,
} from '../../src/index.ts'

const RESERVED = 1_000

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

type Name = 'requests' | 'tokens'

function throttler(): Throttler<Name> {
  const made = createThrottler({
    policies: [
      { name: 'requests', limit: 1_000, interval: '12h' },
      { name: 'tokens', limit: 100_000, interval: '12h' },
    ],
  })
  onTestFinished(() => made.close())
  return made
}

function calling(options: Partial<LimitedFetchOptions<Name>> = {}) {
  const made = throttler()
  const estimate = () => ({ requests: 1, tokens: RESERVED })
  const usage = usageOf('openai', ({ total }) => ({ tokens: total }))
  const get = limitedFetch(made, { key: 'k', estimate, usage, ...options })
  /** Used requests and tokens. */
  const used = async () => (await made.usage('k')).map(({ used }) => used)
  return { made, get, used }
}

const json = (tokens: number) => JSON.stringify({ text: 'Grüße 🦦', usage: { total_tokens: tokens } })

/** A response whose body is passed on chunk by chunk, as a `fetch`. */
function answering(chunks: readonly Uint8Array[], type = 'application/json', pulled = { count: 0 }): typeof fetch {
  return async () => {
    const left = [...chunks]
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled.count++
          const chunk = left.shift()
          if (chunk === undefined) controller.close()
          else controller.enqueue(chunk)
        },
      },
      { highWaterMark: 0 },
    )
    return new Response(body, { headers: { 'Content-Type': type } })
  }
}

const bytes = (text: string) => new TextEncoder().encode(text)

test('a call reserves its estimate, and counts its real use once its body has ended', async () => {
  const { get, used } = calling()
  const seen: unknown[] = []
  const url = await listening(async (_, res) => {
    seen.push(await used())
    res.writeHead(201, 'Made', { 'Content-Type': 'application/json', 'X-Id': '7', 'Set-Cookie': ['a=1', 'b=2'] }).end(json(30))
  })
  const response = await get(url)
  seen.push(await used())
  expect([response.status, response.statusText, response.ok, response.redirected]).toEqual([201, 'Made', true, false])
  expect([response.url, response.type, response.headers.get('x-id')]).toEqual([url, 'basic', '7'])
  expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(response.bodyUsed).toBe(false)
  expect(await response.text()).toBe(json(30))
  expect(response.bodyUsed).toBe(true)
  seen.push(await used())
  expect(seen).toEqual([
    [1, 1_000],
    [1, 1_000],
    [1, 30],
  ])
})

test.each(['background', 'leased', 'central'] as const)('the same with a store and coordination %s', async (coordination) => {
  const made = createThrottler({ store: memoryStore(), policies: [{ name: 'tokens', limit: 100, interval: '12h', coordination }] })
  onTestFinished(() => made.close())
  made.start()
  const usage = usageOf('openai', ({ total }) => ({ tokens: total }))
  const get = limitedFetch(made, { key: 'k', estimate: () => ({ tokens: 90 }), usage, fetch: answering([bytes(json(10))]), timeout: '5s' })
  const first = await get('http://localhost')
  await expect(get('http://localhost')).rejects.toMatchObject({ name: 'AcquireError', reason: 'timeout' })
  await first.text()
  await (await get('http://localhost')).text()
  await expect.poll(async () => (await made.usage('k'))[0]?.used).toBe(20)
})

test('the estimate is made of the URL, and of the init or the Request', async () => {
  const url = await listening((_, res) => res.end())
  const given: unknown[] = []
  const { get, used } = calling({
    estimate: async ({ pathname }, { body }) => {
      given.push(pathname, typeof body)
      return { tokens: 5 }
    },
  })
  await (await get(`${url}a`, { method: 'POST', body: 'x' })).text()
  await (await get(new Request(`${url}b`, { method: 'POST', body: 'x' }), { redirect: 'error' })).text()
  await (await get(`${url}c`)).text()
  expect(given).toEqual(['/a', 'string', '/b', 'object', '/c', 'undefined'])
  expect(await used()).toEqual([0, 15])
})

test('an estimate that throws or has unusable costs rejects the call, and nothing is sent or counted', async () => {
  const sent = vi.fn<typeof fetch>()
  const failing: [Partial<LimitedFetchOptions<Name>>['estimate'], string][] = [
    [() => JSON.parse(''), 'JSON'],
    [() => ({ tokens: 1.5 }), 'Option "cost.tokens"'],
    [() => undefined as never, 'Option "cost"'],
    [() => ({ other: 5 }) as never, 'Unknown policy "other"'],
  ]
  for (const [estimate, message] of failing) {
    const { get, used } = calling({ estimate, fetch: sent } as never)
    await expect(get('http://localhost')).rejects.toThrow(message)
    expect(await used()).toEqual([0, 0])
  }
  expect(sent).not.toHaveBeenCalled()
})

test('a stream passes through as it comes, however it is cut, and counts its last totals', async () => {
  const text = ['data: {"usage":{"total_tokens":3},"t":"ü🦦"}', 'data: {"usage":{"total_tokens":70}}', 'data: [DONE]', ''].join('\r\n\r\n')
  const all = bytes(text)
  const url = await listening(async (_, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    for (const byte of all) {
      res.write(Uint8Array.of(byte))
      await sleep(0)
    }
    res.end()
  })
  const { get, used } = calling()
  const { body } = await get(url)
  const chunks: Uint8Array[] = []
  const seen: number[] = []
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    chunks.push(chunk)
    seen.push((await used())[1] as number)
  }
  expect(Buffer.concat(chunks).equals(all)).toBe(true)
  expect(chunks.length).toBeGreaterThan(5)
  expect(seen.at(-2)).toBe(1_000)
  expect(await used()).toEqual([1, 70])
})

test('a cancelled stream counts the totals that it has shown, or else all reserved units, and ends the connection', async () => {
  let closed = 0
  const url = await listening((_, res) => {
    res.on('close', () => closed++)
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: {"usageMetadata":{"promptTokenCount":4}}\n\n')
    setTimeout(() => res.write('data: {"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":9}}\n\n'), 10)
  })
  const usage = usageOf('gemini', ({ total }) => ({ tokens: total }))
  const { get, used } = calling({ usage })
  await (await get(url)).body?.cancel()
  expect(await used()).toEqual([1, 1_000])
  for await (const _ of (await get(url)).body as ReadableStream) break
  expect(await used()).toEqual([2, 2_000])
  let events = ''
  for await (const chunk of (await get(url)).body as ReadableStream<Uint8Array>) {
    events += Buffer.from(chunk)
    if (events.includes('candidates')) break
  }
  expect(await used()).toEqual([3, 2_013])
  await expect.poll(() => closed).toBe(3)
})

test('an aborted call counts, even if its body is not being read', async () => {
  const url = await listening((_, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: {"usage":{"total_tokens":8}}\n\n')
  })
  const { get, used } = calling()
  const controller = new AbortController()
  const reader = (await get(url, { signal: controller.signal })).body?.getReader()
  await reader?.read()
  controller.abort()
  await expect.poll(used).toEqual([1, 8])
  await expect(reader?.read()).rejects.toMatchObject({ name: 'AbortError' })
})

test.each([
  ['429', 429],
  ['500', 500],
])('a response of status %s used no tokens, and its body is left as it is', async (_, status) => {
  const url = await listening((_, res) => res.writeHead(status, { 'Content-Type': 'application/json' }).end(json(30)))
  const { get, used } = calling()
  const response = await get(url)
  expect(await used()).toEqual([1, 0])
  expect(await response.json()).toMatchObject({ usage: { total_tokens: 30 } })
  expect(await used()).toEqual([1, 0])
})

test('a call without a connection returns all units, and one that breaks later counts in full', async () => {
  const url = await listening((req, res) => {
    if (req.url === '/headers') res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 900 }).write('{')
    setTimeout(() => req.socket.destroy(), 10)
  })
  const { get, used } = calling()
  await expect(get(url)).rejects.toThrow('fetch failed')
  expect(await used()).toEqual([1, 1_000])
  await expect((await get(`${url}headers`)).json()).rejects.toThrow('terminated')
  expect(await used()).toEqual([2, 2_000])
  const unused = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => unused.once('listening', resolve))
  const { port } = unused.address() as AddressInfo
  await new Promise((resolve) => unused.close(resolve))
  await expect(get(`http://127.0.0.1:${port}`)).rejects.toThrow('fetch failed')
  expect(await used()).toEqual([2, 2_000])
})

test('a call without a connection returns all units if the error itself has the code, as in Bun', async () => {
  const { get, used } = calling({ fetch: () => Promise.reject(Object.assign(new TypeError('refused'), { code: 'ECONNREFUSED' })) })
  await expect(get('http://localhost/')).rejects.toThrow('refused')
  expect(await used()).toEqual([0, 0])
})

test('a response without a body settles at once', async () => {
  const url = await listening((req, res) => res.writeHead(req.method === 'HEAD' ? 200 : 204, { 'Content-Type': 'application/json' }).end())
  const seen: unknown[] = []
  const { get, used } = calling({
    usage: (value, { headers }) => {
      seen.push([value, headers.get('content-type')])
      return { tokens: 3 }
    },
  })
  expect((await get(url, { method: 'HEAD' })).body).toBeNull()
  expect((await get(url)).body).toBeNull()
  expect(seen).toEqual([
    [undefined, 'application/json'],
    [undefined, 'application/json'],
  ])
  expect(await used()).toEqual([2, 6])
})

test('a body that is never read settles after the ttl', async () => {
  const url = await listening((_, res) => res.writeHead(200, { 'Content-Type': 'application/json' }).end(json(30)))
  const { get, used, made } = calling({ ttl: 50 })
  const expired: unknown[] = []
  made.on('reservationExpired', (event) => expired.push(event))
  const response = await get(url)
  await expect.poll(() => expired.length).toBe(2)
  expect(await response.json()).toMatchObject({ usage: { total_tokens: 30 } })
  expect(await used()).toEqual([1, 1_000])
})

test.each(['Stra\xdfe', '\xf0\x9f\xa6\xa6', 'a\x01b', ''])(
  'a response passes with any reason phrase that fetch accepts: %j',
  async (reason) => {
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 200 ${reason}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`, 'latin1'))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { get, used } = calling({ usage: () => ({ tokens: 7 }) })
    const response = await get(url)
    expect(response.statusText).toBe((await fetch(url)).statusText)
    expect(response.clone().statusText).toBe(response.statusText)
    expect(await response.text()).toBe('{}')
    expect(await used()).toEqual([1, 7])
  },
)

test('a clone has the same body, status and URL, and the call settles once', async () => {
  const url = await listening((_, res) => res.writeHead(200, { 'Content-Type': 'application/json' }).end(json(30)))
  const { get, used } = calling()
  const response = await get(url)
  const copy = response.clone()
  const third = copy.clone()
  expect([copy.url, copy.status, third.url, third.type]).toEqual([url, 200, url, 'basic'])
  expect(await Promise.all([response.text(), copy.text(), third.text()])).toEqual([json(30), json(30), json(30)])
  expect(await used()).toEqual([1, 30])
})

test('the body is read only as fast as the caller reads it', async () => {
  const pulled = { count: 0 }
  const chunks = Array.from({ length: 100 }, () => bytes('data: 1\n\n'))
  const { get } = calling({ fetch: answering(chunks, 'text/event-stream', pulled) })
  const reader = (await get('http://localhost')).body?.getReader()
  await sleep(5)
  expect(pulled.count).toBe(0)
  for (let i = 1; i <= 3; i++) {
    await reader?.read()
    await sleep(2)
    expect(pulled.count).toBe(i)
  }
})

test('chunks stay usable by their owner, empty ones are skipped, and the body can be read into a buffer of the caller', async () => {
  const shared = Buffer.from(json(40))
  const { get, used } = calling({ fetch: answering([bytes(''), shared, bytes('')]) })
  for (const _ of [1, 2]) expect(await (await get('http://localhost')).text()).toBe(json(40))
  expect(shared.toString()).toBe(json(40))
  const body = (await get('http://localhost')).body as ReadableStream<Uint8Array>
  const reader = body.getReader({ mode: 'byob' })
  let text = ''
  for (let done = false; !done; ) {
    const read = await reader.read(new Uint8Array(7))
    if (read.value !== undefined) text += Buffer.from(read.value).toString('latin1')
    done = read.done
  }
  expect(Buffer.from(text, 'latin1').toString()).toBe(json(40))
  expect(await used()).toEqual([3, 120])
})

test('a body with chunks that are no bytes fails as it would without an estimate, and the call counts', async () => {
  const { get, used } = calling({ fetch: answering(['text' as never]), usage: () => ({ tokens: 7 }) })
  await expect((await get('http://localhost')).text()).rejects.toThrow(TypeError)
  expect(await used()).toEqual([1, 7])
})

test('a body of more than 4 MiB passes through, and counts the reserved units', async () => {
  const chunks = [...Array.from({ length: 5 }, () => new Uint8Array(2 ** 20).fill(32)), bytes(json(40))]
  const { get, used } = calling({ fetch: answering(chunks) })
  const { byteLength } = await (await get('http://localhost')).arrayBuffer()
  expect(byteLength).toBe(5 * 2 ** 20 + bytes(json(40)).length)
  expect(await used()).toEqual([1, 1_000])
})

test('slots are released when the body has ended', async () => {
  const made = createThrottler({ policies: [{ name: 'slots', limit: 1, algorithm: concurrency() }] })
  onTestFinished(() => made.close())
  const get = limitedFetch(made, { key: 'k', estimate: () => ({ slots: 1 }), fetch: answering([bytes('{}')]), timeout: 0 })
  const response = await get('http://localhost')
  await expect(get('http://localhost')).rejects.toMatchObject({ reason: 'timeout' })
  await response.text()
  await (await get('http://localhost')).text()
})

test.each<[string, unknown]>([
  [
    'threw "no"',
    () => {
      throw 'no'
    },
  ],
  ['returned a promise', async () => Promise.reject(new Error('no'))],
  [
    'threw "unread"',
    () => ({
      get tokens() {
        throw 'unread'
      },
    }),
  ],
])('a usage function that %s costs one warning and nothing else', async (problem, usage) => {
  const { get, used, made } = calling({ usage: usage as never, fetch: answering([bytes(json(40))]) })
  const warnings: string[] = []
  made.on('warning', ({ error }) => warnings.push(error.message))
  expect(await (await get('http://localhost')).text()).toBe(json(40))
  expect(await (await get('http://localhost')).text()).toBe(json(40))
  expect(await used()).toEqual([2, 2_000])
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain(`Option "usage" of limitedFetch() ${problem}, which is ignored.`)
})

test.each([
  ['no answer', undefined],
  ['without headers', { status: 200, json: async () => ({}) }],
])('anything that stands in for an answer is returned, and counts the reserved units: %s', async (_, answer) => {
  const { get, used } = calling({ fetch: (async () => answer) as never })
  expect(await get('http://localhost')).toBe(answer)
  expect(await used()).toEqual([1, 1_000])
})

test.each([
  [{ estimate: 5 }, 'Option "estimate"'],
  [{ usage: 5 }, 'Option "usage"'],
  [{ ttl: 5 }, 'Option "ttl"'],
  [{ cost: 5 }, 'Remove "cost": "estimate" returns the costs'],
  [{ estimate: undefined }, 'Remove "usage": it applies only with "estimate"'],
  [{ estimate: undefined, usage: undefined, ttl: '5m' }, 'Remove "ttl"'],
])('bad options are rejected: %j', (options, message) => {
  expect(() => calling(options as never)).toThrow(message)
})
