import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { WeirError } from '@weir/core'
import { ThrottledError } from '@weir/core/adapter'
import { manualClock } from '@weir/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { concurrency, forwardedAddress, type Limit, type ThrottleOptions, throttle } from '../src/index.ts'

const ONE = { key: 'all', limit: 1, interval: '1h', clock: manualClock() } as const
const FIVE = { ...ONE, limit: 5 } as const
const FLIGHT = { key: 'all', limit: 1, clock: ONE.clock, algorithm: concurrency() } as const
const UNSEEN = "limit.rejection() can't see the end of a response, so"

/** A new request. */
function get(path = '/', init?: RequestInit): Request {
  return new Request(`http://localhost${path}`, init)
}

function warningsOf({ throttler }: Limit): string[] {
  const warnings: string[] = []
  throttler.on('warning', ({ error }) => warnings.push(error.message))
  return warnings
}

/** Free units of the key that all requests share. */
function left({ throttler }: Limit): number {
  return throttler.peek('all').remaining
}

const hello = () => new Response('hello')

describe('a wrapped handler', () => {
  test('gets the arguments that its platform passes, and answers while the limit lasts', async () => {
    const handler = throttle(ONE)(async (request: Request, { params }: { params: string }) => new Response(`${request.url} ${params}`))
    const allowed = await handler(get('/a'), { params: 'b' })
    expect(await allowed.text()).toBe('http://localhost/a b')
    expect(allowed.headers.get('ratelimit')).toMatch(/^"default";r=0;t=/)
    const rejected = await handler(get('/a'), { params: 'b' })
    expect(rejected.status).toBe(429)
    expect(rejected.headers.get('content-type')).toBe('application/problem+json')
    expect(rejected.headers.get('retry-after')).toMatch(/^3(600|59\d)$/)
    expect(await rejected.json()).toMatchObject({ status: 429 })
  })

  test('may get a request with a member `request` that throws, as in a proxy of Next.js', async () => {
    class ProxyRequest extends Request {
      get request(): never {
        throw new Error('The middleware accepts an async API directly')
      }
    }
    const limit = throttle(ONE)
    const request = new ProxyRequest('http://localhost/')
    expect(await limit.rejection(request)).toBe(undefined)
    expect((await limit(hello)(new ProxyRequest('http://localhost/'))).status).toBe(429)
  })

  test('may get an event of a framework that contains the request', async () => {
    const limit = throttle({ ...ONE, key: 'ip' })
    const handler = limit(async ({ request }: { request: Request; getClientAddress: () => string }) => new Response(request.method))
    const from = async (address: string) => (await handler({ request: get(), getClientAddress: () => address })).status
    expect([await from('192.0.2.1'), await from('192.0.2.2'), await from('192.0.2.1')]).toEqual([200, 200, 429])
  })

  test('is counted once by a limit in several places, also if one of them checks', async () => {
    const limit = throttle(FIVE)
    const request = get()
    await limit.rejection(request)
    await limit(limit(hello))(request)
    expect(left(limit)).toBe(4)
    await limit(hello)(get())
    expect(left(limit)).toBe(3)
  })

  test('is counted once if a server of Node.js passes several requests for one message', async () => {
    const limit = throttle(FIVE)
    const env = { incoming: { socket: {} }, outgoing: { on() {}, headersSent: false } }
    await limit.rejection(get(), env)
    await limit(hello as (request: Request, platform: object) => Response)(get(), env)
    expect(left(limit)).toBe(4)
  })

  test('of two limits shows both, in their order, when they allow and when the inner one rejects', async () => {
    const handler = throttle({ ...FIVE, name: 'outer' })(throttle({ ...ONE, name: 'inner' })(hello))
    const shown = async () => {
      const { status, headers } = await handler(get())
      return [status, headers.get('ratelimit')?.replace(/;t=\d+/g, '')]
    }
    expect(await shown()).toEqual([200, '"outer";r=4, "inner";r=0'])
    expect(await shown()).toEqual([429, '"outer";r=3, "inner";r=0'])
  })

  test('passes its errors on, and they count as status 500', async () => {
    const limit = throttle({ ...ONE, skipFailedRequests: true })
    const error = new Error('boom')
    const handler = limit(() => Promise.reject(error))
    await expect(handler(get())).rejects.toBe(error)
    await expect(limit(() => throw_(error))(get())).rejects.toBe(error)
    expect(left(limit)).toBe(1)
  })

  test('may throw a response, which gets the fields and counts by its status', async () => {
    const limit = throttle({ ...ONE, skipFailedRequests: true })
    const thrown = await limit(() => throw_(new Response(null, { status: 404 })))(get()).catch((response: unknown) => response)
    expect((thrown as Response).headers.get('ratelimit')).toContain('r=0;')
    expect(left(limit)).toBe(1)
  })

  test('shows its decision to the handler, and counts the use that it reports', async () => {
    const limit = throttle({ ...FIVE, limit: 100, estimate: () => ({ default: 50 }), settle: () => undefined })
    const handler = limit((request) => {
      limit.decision(request)?.used?.({ default: 7 })
      return new Response('hello')
    })
    const response = await handler(get())
    expect(left(limit)).toBe(50)
    await response.text()
    expect(left(limit)).toBe(93)
  })
})

describe('responses', () => {
  test.each([
    ['a redirect', () => Response.redirect('http://localhost/other', 303), 303],
    ['no content', () => new Response(null, { status: 204 }), 204],
    ['a stream', () => new Response(new Blob(['hello']).stream(), { status: 201 }), 201],
  ])('get the fields: %s', async (_what, handler, status) => {
    const response = await throttle(FIVE)(handler)(get())
    expect(response.status).toBe(status)
    expect(response.headers.get('ratelimit')).toContain('r=4;')
    if (status === 303) expect(response.headers.get('location')).toBe('http://localhost/other')
  })

  test('stay the same objects if only fields are added', async () => {
    const response = new Response(new Blob(['hello']).stream())
    expect(await throttle(FIVE)(() => response)(get())).toBe(response)
  })

  test.each([
    ['of an error', Response.error(), 1],
    ['to a WebSocket', Object.assign(new Response(null), { webSocket: {} }), 0],
  ])('without a valid status or connection pass untouched: a response %s', async (_what, response, warned) => {
    const limit = throttle(FIVE)
    const warnings = warningsOf(limit)
    expect(await limit(() => response)(get())).toBe(response)
    expect(response.headers.get('ratelimit')).toBeNull()
    expect(warnings).toHaveLength(warned)
  })

  test('without a valid status stay errors on @hono/node-server, whose Response accepts any status', async () => {
    // The server prints the errors.
    vi.spyOn(console, 'error').mockReturnValue()
    const native = globalThis.Response
    const limit = throttle(FIVE)
    const made = [Response.error(), 'text' as never, null as never]
    const handler = limit(() => made.shift() as Response)
    const server = createServer(
      getRequestListener((request) => handler(request), { errorHandler: () => new Response(null, { status: 500 }) }),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const statuses = [1, 2, 3].map(async () => (await fetch(`http://127.0.0.1:${port}/`)).status)
      expect(await Promise.all(statuses)).toEqual([500, 500, 500])
    } finally {
      server.close()
      Object.defineProperty(globalThis, 'Response', { value: native })
    }
  })

  test('of a connection that Bun has upgraded are undefined, and end at once', async () => {
    const limit = throttle(FLIGHT)
    const warnings = warningsOf(limit)
    expect(await limit(() => undefined)(get())).toBeUndefined()
    expect([left(limit), warnings]).toEqual([1, []])
  })

  test('keep a slot until their body has been read, and are read at the pace of the client', async () => {
    const limit = throttle(FLIGHT)
    let pulled = 0
    const pull = (controller: ReadableStreamDefaultController) => {
      if (++pulled > 3) return controller.close()
      controller.enqueue(new TextEncoder().encode('x'))
    }
    const body = () => new ReadableStream({ pull }, { highWaterMark: 0 })
    const response = await limit(() => new Response(body()))(get())
    await new Promise((resolve) => setImmediate(resolve))
    expect([pulled, left(limit)]).toEqual([0, 0])
    const reader = (response.body as ReadableStream).getReader()
    await reader.read()
    expect([pulled, left(limit)]).toEqual([1, 0])
    while (!(await reader.read()).done);
    expect(left(limit)).toBe(1)
  })

  test.each([
    ['the reader cancels', async (response: Response) => response.body?.cancel('enough')],
    ['the client disconnects', async (_response: Response, gone: AbortController) => gone.abort()],
    [
      'the source fails',
      async (response: Response, _gone: AbortController, fail: () => void) => {
        fail()
        await expect(response.text()).rejects.toThrow('boom')
      },
    ],
  ])('refund a request and release its slot when %s', async (_what, end) => {
    const policies = [
      { name: 'flight', key: 'all', limit: 1, algorithm: concurrency() },
      { name: 'rate', key: 'all', limit: 1, interval: '1h' },
    ] as const
    const limit = throttle({ clock: ONE.clock, policies, skipFailedRequests: true })
    const gone = new AbortController()
    let controller: ReadableStreamDefaultController | undefined
    let reason: unknown
    const body = new ReadableStream({
      start: (started) => void (controller = started),
      cancel: (given) => void (reason = given),
    })
    const response = await limit(() => new Response(body))(get('/', { signal: gone.signal }))
    expect(limit.throttler.peek('all').parts.map(({ remaining }) => remaining)).toEqual([0, 0])
    await end(response, gone, () => controller?.error(new Error('boom')))
    expect(limit.throttler.peek('all').parts.map(({ remaining }) => remaining)).toEqual([1, 1])
    if (_what === 'the reader cancels') expect(reason).toBe('enough')
  })

  test('are refunded if the client left before its request was decided', async () => {
    const gone = new AbortController()
    const key = async () => {
      gone.abort()
      return 'all'
    }
    const limit = throttle({ ...ONE, key, skipFailedRequests: true })
    await limit(hello)(get('/', { signal: gone.signal }))
    expect(left(limit)).toBe(1)
  })

  test('to HEAD release their slot although no server reads their body', async () => {
    const limit = throttle(FLIGHT)
    await limit(hello)(get('/', { method: 'HEAD' }))
    expect(left(limit)).toBe(1)
  })

  test('to a client that disconnects during a wait are not made', async () => {
    const limit = throttle({ ...FLIGHT, delay: '1h' })
    const first = await limit(hello)(get())
    const gone = new AbortController()
    let handled = 0
    const second = limit(() => {
      handled++
      return hello()
    })(get('/', { signal: gone.signal }))
    await vi.waitFor(() => expect(limit.throttler.waiting).toBe(1))
    gone.abort()
    expect((await second).status).toBe(499)
    await first.text()
    expect([handled, left(limit)]).toEqual([0, 1])
  })
})

describe('a check', () => {
  test('resolves with a response if the request is rejected, else with undefined', async () => {
    const limit = throttle(ONE)
    const request = get()
    expect(await limit.rejection(request)).toBeUndefined()
    expect(limit.decision(request)?.remaining).toBe(0)
    expect(limit.headers(request)).toEqual({ 'RateLimit-Policy': '"default";q=1;w=3600', RateLimit: '"default";r=0;t=3600' })
    const rejection = await limit.rejection(get())
    expect(rejection?.status).toBe(429)
    expect(rejection?.headers.get('ratelimit')).toContain('r=0;')
    expect([limit.decision(get()), limit.headers(get())]).toEqual([undefined, {}])
  })

  test('resolves also with throwOnReject', async () => {
    const limit = throttle({ ...ONE, throwOnReject: true })
    const request = get()
    await limit.rejection(request)
    expect((await limit.rejection(get()))?.status).toBe(429)
    await expect(limit(hello)(get())).rejects.toBeInstanceOf(ThrottledError)
  })

  test.each<[string, ThrottleOptions]>([
    ['it releases slots of concurrency() at once', FLIGHT],
    ['option "skipFailedRequests" has no effect', { ...FIVE, skipFailedRequests: true }],
    ['option "settle" has no effect', { ...FIVE, estimate: () => ({ default: 1 }), settle: () => undefined }],
  ])('warns once that %s', async (what, options) => {
    const limit = throttle(options)
    const warnings = warningsOf(limit)
    for (let i = 0; i < 3; i++) expect(await limit.rejection(get())).toBeUndefined()
    expect(warnings).toEqual([expect.stringContaining(`${UNSEEN} ${what}. Wrap the handler instead: limit(handler).`)])
  })

  test('leaves a reservation open until your code settles it', async () => {
    const limit = throttle({ ...FIVE, estimate: () => ({ default: 4 }) })
    const request = get()
    await limit.rejection(request)
    expect(left(limit)).toBe(1)
    limit.decision(request)?.settle?.({ default: 2 })
    expect(left(limit)).toBe(3)
  })

  test('peek counts nothing', async () => {
    const limit = throttle(ONE)
    expect((await limit.peek(get()))?.remaining).toBe(1)
    expect((await limit.peek({ request: get() }))?.remaining).toBe(1)
  })
})

describe('rejections', () => {
  test('are answered by a handler, which gets a response with their status and headers', async () => {
    const limit = throttle({ ...ONE, handler: (_request, response) => Response.json({ slow: true }, response) })
    await limit(hello)(get())
    const response = await limit(hello)(get())
    expect([response.status, await response.json()]).toEqual([429, { slow: true }])
    expect(response.headers.get('retry-after')).not.toBeNull()
    expect(response.headers.get('content-type')).toBe('application/json')
  })

  test('of a check are the response of the handler, even if it can have no fields', async () => {
    const response = Response.error()
    const limit = throttle({ ...ONE, handler: () => response })
    const warnings = warningsOf(limit)
    await limit.rejection(get())
    expect(await limit.rejection(get())).toBe(response)
    expect(warnings).toHaveLength(1)
  })

  test('are answered with the standard response, and a warning, if the handler returns none', async () => {
    const limit = throttle({ ...ONE, handler: () => 'text' })
    const warnings = warningsOf(limit)
    await limit(hello)(get())
    expect((await limit(hello)(get())).headers.get('content-type')).toBe('application/problem+json')
    expect(warnings).toEqual([expect.stringContaining('Option "handler": it must return a Response')])
  })
})

describe('success', () => {
  test('is decided with the response', async () => {
    const statuses: number[] = []
    const requestWasSuccessful = (_request: Request, response: Response) => {
      statuses.push(response.status)
      return response.status !== 404
    }
    const limit = throttle({ ...FIVE, skipSuccessfulRequests: true, requestWasSuccessful })
    await (await limit(() => new Response('no', { status: 404 }))(get())).text()
    await (await limit(hello)(get())).text()
    expect([statuses, left(limit)]).toEqual([[404, 200], 4])
  })
})

describe('addresses', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.unstubAllEnvs()
    vi.resetModules()
  })

  /** The key of a request with these headers on a platform that passes these arguments. */
  async function keyOf(headers: Record<string, string>, rest: readonly unknown[], options: object = {}): Promise<string | undefined> {
    // Imported again, because some platforms are found when the module is loaded.
    const { throttle } = (await import('../src/index.ts')) as typeof import('../src/index.ts')
    const limit = throttle({ ...ONE, key: 'ip', ...options })
    return (await limit.peek(get('/', { headers }), ...rest))?.key
  }

  const FORGED = { 'x-forwarded-for': '6.6.6.6', 'x-real-ip': '6.6.6.6', 'cf-connecting-ip': '6.6.6.6', forwarded: 'for=6.6.6.6' }

  test.each<[string, readonly unknown[]]>([
    ['@hono/node-server', [{ incoming: { socket: { remoteAddress: '192.0.2.1' } }, outgoing: {} }]],
    ['a server in the environment', [{ server: { incoming: { socket: { remoteAddress: '192.0.2.1' } }, outgoing: {} } }]],
    ['Bun', [{ requestIP: () => ({ address: '192.0.2.1' }) }]],
    ['Deno', [{ remoteAddr: { transport: 'tcp', hostname: '192.0.2.1', port: 1 } }]],
  ])('come from %s, never from a header', async (_what, rest) => {
    expect(await keyOf(FORGED, rest)).toBe('192.0.2.1')
  })

  test.each<[string, readonly unknown[]]>([
    ['nothing', []],
    ['other arguments', [{ params: {} }]],
    ['Bun without an address', [{ requestIP: () => null }]],
    ['Deno on a Unix socket', [{ remoteAddr: { transport: 'unix', path: '/x' } }]],
  ])('are one unknown address if the platform passes %s', async (_what, rest) => {
    expect(await keyOf(FORGED, rest)).toBe('unknown')
  })

  test('come from the header of Cloudflare in Workers only', async () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' })
    vi.resetModules()
    expect(await keyOf({ ...FORGED, 'cf-connecting-ip': '192.0.2.1' }, [{ requestIP: () => ({ address: '6.6.6.6' }) }])).toBe('192.0.2.1')
  })

  test('come from the header of Vercel on Vercel only', async () => {
    vi.stubEnv('VERCEL', '1')
    vi.resetModules()
    expect(await keyOf({ ...FORGED, 'x-real-ip': '192.0.2.1' }, [{ params: {} }])).toBe('192.0.2.1')
  })

  test.each([
    [1, '192.0.2.1', '192.0.2.1'],
    [1, '6.6.6.6, 192.0.2.1', '192.0.2.1'],
    [2, '6.6.6.6, 192.0.2.1 ,10.0.0.1', '192.0.2.1'],
    [1, '', '198.51.100.1'],
  ])('behind %j proxies, of "%s" it is %s', async (proxies, listed, address) => {
    const rest = [{ requestIP: () => ({ address: '198.51.100.1' }) }]
    expect(await keyOf({ 'x-forwarded-for': listed }, rest, { address: forwardedAddress(proxies) })).toBe(address)
  })

  test('may be found by a function, which gets the arguments of the handler', async () => {
    const address = (_request: Request, context: { ip: string }) => context.ip
    expect(await keyOf({}, [{ ip: '192.0.2.1' }], { address })).toBe('192.0.2.1')
    const ofEvent = throttle({ ...ONE, key: 'ip', address: (_request, event: { clientAddress: string }) => event.clientAddress })
    expect((await ofEvent.peek({ request: get(), clientAddress: '192.0.2.2' } as { request: Request }))?.key).toBe('192.0.2.2')
  })

  test('that are unknown make a warning with the next step', async () => {
    const limit = throttle({ ...ONE, key: 'ip' })
    const warnings = warningsOf(limit)
    await limit(hello)(get())
    await limit(hello)(get())
    expect(warnings).toEqual([expect.stringContaining('Pass all arguments of your handler, as in limit.rejection(request, server), or')])
  })

  test.each([[0], [1.5], [101], ['1']])('%j proxies are rejected', (proxies) => {
    expect(() => forwardedAddress(proxies as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test.each([[1], ['x-forwarded-for'], [null], [forwardedAddress]])('an option address that is none (%j) is rejected', (address) => {
    expect(() => throttle({ ...ONE, address } as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })
})

test('a request in place of a handler is rejected with the next step', () => {
  const limit = throttle(ONE)
  const wrap = () => limit(get() as never)
  expect(wrap).toThrow(expect.objectContaining<Partial<WeirError>>({ code: 'WEIR_INVALID_OPTION' }))
  expect(wrap).toThrow('limit(handler) for a function, or await limit.rejection(request) for a request')
})

test.each([[undefined], [null], ['/'], [{}], [{ request: undefined }]])(
  '%j in place of a request is rejected with the next step',
  async (given) => {
    const limit = throttle(ONE)
    const message = 'the Request that your handler gets, or an object that contains one as "request"'
    await expect(limit.rejection(given as never)).rejects.toThrow(message)
    await expect(limit.peek(given as never)).rejects.toThrow(message)
    expect(() => limit(hello)(given as never)).toThrow(message)
  },
)

function throw_(what: unknown): never {
  throw what
}
