import { createThrottler, type Decision, type Throttler } from '@weir/core'
import type { HandlerDecision } from '@weir/core/adapter'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { expectTypeOf, test } from 'vitest'
import weir, { header, type RouteThrottleOptions } from '../src/index.ts'

declare module '../src/index.ts' {
  interface WeirTypes {
    policy: 'everyone' | 'user'
  }
}

const one = { key: 'ip', limit: 1, interval: '1m' } as const
const app = fastify()

test('functions of the options get the request of Fastify', () => {
  app.register(weir, {
    ...one,
    hook: 'preHandler',
    key: (request) => {
      expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
      return request.hostname
    },
    handler: (request, reply, rejection) => {
      expectTypeOf(request).toEqualTypeOf<FastifyRequest>()
      expectTypeOf(reply).toEqualTypeOf<FastifyReply>()
      reply.send(rejection.body)
    },
  })
  app.register(weir, { policies: [{ name: 'user', ...one, key: ['ip', header('x-key'), (request) => request.hostname] }] })
  app.register(weir, { throttler: createThrottler({ policies: [one] }) })
})

test('wrong options do not compile', () => {
  // @ts-expect-error a number is no style of headers
  app.register(weir, { ...one, headers: 6 })
  // @ts-expect-error no key
  app.register(weir, { limit: 1, interval: '1m' })
  // @ts-expect-error no key
  app.register(weir, { policies: [{ name: 'user', limit: 1, interval: '1m' }] })
  // @ts-expect-error not a hook that requests can be throttled in
  app.register(weir, { ...one, hook: 'onSend' })
})

test('routes take options of their own, and requests carry the decision', () => {
  app.get('/cheap', { config: { throttle: false } }, () => '')
  app.get('/expensive', { config: { throttle: { limit: 5, cost: (request) => request.url.length } } }, (request) => {
    expectTypeOf(request.throttle).toEqualTypeOf<HandlerDecision<'everyone' | 'user'> | null>()
    return ''
  })
  expectTypeOf(app.throttler).toEqualTypeOf<Throttler<'everyone' | 'user', FastifyRequest>>()
})

test('a misspelled option of a route does not compile', () => {
  // @ts-expect-error it is "limit"
  app.get('/typo', { config: { throttle: { limt: 5 } } }, () => '')
  // @ts-expect-error it is "limit"
  app.route({ method: 'GET', url: '/typo', config: { throttle: { limt: 5 } }, handler: () => '' })
  const options: RouteThrottleOptions = { limit: 5 }
  app.get('/typo', { config: { throttle: options } }, () => '')
  // @ts-expect-error not a hook that requests can be throttled in
  app.get('/typo', { config: { throttle: { limit: 5, hook: 'onSend' } } }, () => '')
  // @ts-expect-error only false turns limits off
  app.get('/typo', { config: { throttle: true } }, () => '')
  app.get('/other', { config: { throttle: { limit: 5, hook: 'preHandler' }, other: 1 } }, () => '')
})

test('limits of places of their own have a name, and are a hook', () => {
  app.get('/login', { onRequest: app.throttle({ name: 'login', limit: 5, key: (request) => request.hostname }) }, () => '')
  app.get('/all', { preHandler: [app.throttle(), app.throttle({ policies: [{ name: 'all', ...one }] })] }, () => '')
  app.setNotFoundHandler({ preHandler: app.throttle() }, () => '')
  app.addHook('preValidation', app.throttle({ throttler: createThrottler({ policies: [one] }) }))
  // @ts-expect-error no name
  app.throttle({ limit: 5 })
  // @ts-expect-error it is "limit"
  app.throttle({ name: 'login', limt: 5 })
  app.get('/asked', async (request) => {
    expectTypeOf(await app.throttle().check(request)).toEqualTypeOf<Decision | undefined>()
  })
})
