import { createThrottler, type Decision } from '@weir/core'
import { Hono } from 'hono'
import { expectTypeOf, test } from 'vitest'
import { forwardedAddress, header, throttle } from '../src/index.ts'

const one = { key: 'ip', limit: 1, interval: '1m' } as const
const limit = throttle(one)

/** A request of a framework. */
interface FrameworkRequest extends Request {
  readonly nextUrl: URL
}

/** An event of a framework. */
interface FrameworkEvent {
  readonly request: Request
  readonly params: { readonly id: string }
}

test('functions of the options get the request', () => {
  throttle({
    ...one,
    address: forwardedAddress(1),
    key: (request) => {
      expectTypeOf(request).toEqualTypeOf<Request>()
      return request.headers.get('x-user') ?? undefined
    },
    skip: (request) => request.method === 'GET',
    handler: (request, response, rejection) => {
      expectTypeOf(request).toEqualTypeOf<Request>()
      return new Response(rejection.body, response)
    },
    skipFailedRequests: true,
    requestWasSuccessful: (_request, response) => response.status < 500,
  })
  throttle({ ...one, address: (_request, context: { ip: string }) => context.ip })
  throttle({ policies: [{ name: 'a', ...one, key: ['ip', header('x-key'), (request) => request.url] }] })
})

test('a wrapped handler keeps its arguments', () => {
  const plain = limit((request) => {
    expectTypeOf(request).toEqualTypeOf<Request>()
    return new Response()
  })
  expectTypeOf(plain).toEqualTypeOf<(request: Request) => Promise<Response>>()
  const next = limit(async (request: FrameworkRequest, { params }: { params: Promise<{ id: string }> }) =>
    Response.json([request.nextUrl, await params]),
  )
  expectTypeOf(next).toEqualTypeOf<(request: FrameworkRequest, context: { params: Promise<{ id: string }> }) => Promise<Response>>()
  const upgraded = limit((_request, server: { upgrade(): boolean }) => (server.upgrade() ? undefined : new Response()))
  expectTypeOf(upgraded).returns.toEqualTypeOf<Promise<Response | undefined>>()
  const event = limit(({ params }: FrameworkEvent) => Response.json(params.id))
  expectTypeOf(event).toEqualTypeOf<(event: FrameworkEvent) => Promise<Response>>()
  const app = new Hono<{ Bindings: { secret: string } }>()
  const worker = { fetch: limit(app.fetch) }
  expectTypeOf(worker.fetch).parameter(0).toEqualTypeOf<Request>()
  expectTypeOf(worker.fetch).returns.toEqualTypeOf<Promise<Response>>()
})

test('a contextual type of a framework gives the event', () => {
  const handler: (event: FrameworkEvent) => Response | Promise<Response> = limit(async ({ request, params }) => {
    expectTypeOf(params.id).toEqualTypeOf<string>()
    return new Response(request.url)
  })
  expectTypeOf(handler).toBeFunction()
})

test('a check resolves with a response or undefined', async () => {
  expectTypeOf(await limit.rejection(new Request('http://a'))).toEqualTypeOf<Response | undefined>()
  expectTypeOf(await limit.rejection({ request: new Request('http://a') }, 1)).toEqualTypeOf<Response | undefined>()
  expectTypeOf(limit.headers(new Request('http://a'))).toEqualTypeOf<Record<string, string>>()
  expectTypeOf(await limit.peek(new Request('http://a'))).toEqualTypeOf<Decision | undefined>()
})

test('names of policies are a union in decisions', () => {
  const levels = throttle({
    policies: [
      { name: 'user', ...one },
      { name: 'global', ...one },
    ],
  })
  expectTypeOf(levels.decision(new Request('http://a'))?.policy?.name).toEqualTypeOf<'user' | 'global' | undefined>()
  throttle(createThrottler({ policies: [one] }))
})

test('wrong options and handlers do not compile', () => {
  // @ts-expect-error no key
  throttle({ limit: 1, interval: '1m' })
  // @ts-expect-error a header's name is no way to find an address
  throttle({ ...one, address: 'x-forwarded-for' })
  // @ts-expect-error a handler returns a response
  limit(() => 'text')
  // @ts-expect-error a request is no handler
  limit(new Request('http://a'))
})
