import Router from '@koa/router'
import { createThrottler, type Decision } from '@weir/core'
import Koa, { type Context } from 'koa'
import { expectTypeOf, test } from 'vitest'
import { header, throttle } from '../src/index.ts'

const one = { key: 'ip', limit: 1, interval: '1m' } as const

test('functions of the options get the context of Koa', () => {
  throttle({
    ...one,
    router: new Router(),
    key: (ctx) => {
      expectTypeOf(ctx).toEqualTypeOf<Context>()
      return ctx.get('x-user')
    },
    skip: (ctx) => ctx.path === '/health',
    handler: (ctx, rejection) => {
      expectTypeOf(ctx).toEqualTypeOf<Context>()
      ctx.body = rejection.body
    },
  })
  throttle({ policies: [{ name: 'a', ...one, key: ['ip', header('x-key'), (ctx) => ctx.hostname] }] })
})

test('names of policies are a union in decisions', () => {
  throttle({
    policies: [
      { name: 'user', ...one },
      { name: 'global', ...one },
    ],
    onRejected: (_ctx, decision) => expectTypeOf(decision.policy?.name).toEqualTypeOf<'user' | 'global' | undefined>(),
  })
})

test('wrong options do not compile', () => {
  // @ts-expect-error a number is no style of headers
  throttle({ ...one, headers: 6 })
  // @ts-expect-error no key
  throttle({ limit: 1, interval: '1m' })
  // @ts-expect-error an unknown key
  throttle({ ...one, key: 'user' })
})

test('the middleware fits, and the state carries the decision', () => {
  const app = new Koa()
  app.use(throttle(one))
  app.use(throttle(createThrottler({ policies: [one] })))
  app.use((ctx) => {
    const decision: Decision | undefined = ctx.state.throttle
    ctx.body = String(decision?.remaining)
  })
})
