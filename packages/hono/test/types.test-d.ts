import { createThrottler, type Decision } from '@weir/core'
import { type Context, Hono } from 'hono'
import { expectTypeOf, test } from 'vitest'
import { forwardedAddress, header, throttle } from '../src/index.ts'

const one = { key: 'ip', limit: 1, interval: '1m' } as const

test('functions of the options get the context of Hono', () => {
  throttle({
    ...one,
    address: forwardedAddress(1),
    key: (c) => {
      expectTypeOf(c).toEqualTypeOf<Context>()
      return c.req.header('x-user')
    },
    skip: (c) => c.req.path === '/health',
    handler: (c, rejection) => {
      expectTypeOf(c).toEqualTypeOf<Context>()
      return c.text(rejection.body)
    },
  })
  throttle({ policies: [{ name: 'a', ...one, key: ['ip', header('x-key'), (c) => c.req.url] }] })
})

test('names of policies are a union in decisions', () => {
  throttle({
    policies: [
      { name: 'user', ...one },
      { name: 'global', ...one },
    ],
    onRejected: (_c, decision) => expectTypeOf(decision.policy?.name).toEqualTypeOf<'user' | 'global' | undefined>(),
  })
})

test('wrong options do not compile', () => {
  // @ts-expect-error a number is no style of headers
  throttle({ ...one, headers: 6 })
  // @ts-expect-error no key
  throttle({ limit: 1, interval: '1m' })
  // @ts-expect-error an unknown key
  throttle({ ...one, key: 'user' })
  // @ts-expect-error a header's name is no way to find an address
  throttle({ ...one, address: 'x-forwarded-for' })
})

test('the middleware fits, and the context carries the decision', () => {
  const app = new Hono<{ Variables: { user: string } }>()
  app.use(throttle(one))
  app.use('/api/*', throttle(createThrottler({ policies: [one] })))
  app.get('/', throttle(one), (c) => {
    const decision: Decision | undefined = c.get('throttle')
    return c.text(String(decision?.remaining))
  })
})
