import { createThrottler } from '@weir/core'
import type { HandlerDecision } from '@weir/core/adapter'
import express, { type Request, type Response } from 'express'
import { expectTypeOf, test } from 'vitest'
import { concurrency, header, throttle } from '../src/index.ts'

const one = { key: 'ip', limit: 1, interval: '1m' } as const

test('functions of the options get the request of Express', () => {
  throttle({
    ...one,
    key: (req) => {
      expectTypeOf(req).toEqualTypeOf<Request>()
      return req.get('x-user')
    },
    cost: (req) => Number(req.query['n']),
    match: (req) => req.secure,
    skip: (req) => req.path === '/health',
    handler: (req, res, rejection) => {
      expectTypeOf(req).toEqualTypeOf<Request>()
      expectTypeOf(res).toEqualTypeOf<Response>()
      res.send(rejection.body)
    },
    message: (_req, decision) => `${decision.limit}`,
    requestWasSuccessful: (_req, res) => res.statusCode < 300,
    skipFailedRequests: true,
  })
  throttle({ policies: [{ name: 'a', ...one, key: ['ip', header('x-key'), (req) => req.hostname] }] })
})

test('a delay is a duration, or a function of the units above the limit and the request; with slots only a duration', () => {
  throttle({ ...one, delay: '2s' })
  throttle({
    ...one,
    delay: (over, req) => {
      expectTypeOf(over).toEqualTypeOf<number>()
      expectTypeOf(req).toEqualTypeOf<Request>()
      return over > 5 ? Infinity : 100
    },
  })
  throttle({ ...one, delay: async () => '1s' as const })
  throttle({ key: 'ip', limit: 1, algorithm: concurrency(), delay: '5s' })
  // @ts-expect-error the delay of concurrency() is no function
  throttle({ key: 'ip', limit: 1, algorithm: concurrency(), delay: () => 100 })
  // @ts-expect-error no duration
  throttle({ ...one, delay: () => true })
})

test('names of policies are a union in decisions', () => {
  const middleware = throttle({
    policies: [
      { name: 'user', ...one },
      { name: 'global', ...one },
    ],
    onRejected: (_req, decision) => expectTypeOf(decision.policy?.name).toEqualTypeOf<'user' | 'global' | undefined>(),
  })
  expectTypeOf(middleware.throttler.check('k').policy?.name).toEqualTypeOf<'user' | 'global' | undefined>()
})

test('policies with plans have a name for each plan', () => {
  const one = throttle({
    name: 'user',
    key: 'ip',
    interval: '1m',
    plans: { free: 1, pro: 2 },
    plan: (req) => (req.secure ? 'pro' : 'free'),
    onRejected: (_req, decision) => expectTypeOf(decision.policy?.name).toEqualTypeOf<'user' | 'user:free' | 'user:pro' | undefined>(),
  })
  expectTypeOf(one.throttler.check('k').policy?.name).toEqualTypeOf<'user' | 'user:free' | 'user:pro' | undefined>()
  const several = throttle({
    policies: [
      { name: 'user', key: 'ip', interval: '1m', plans: { free: 1, pro: 2 }, plan: (req) => (req.secure ? 'pro' : 'free') },
      { name: 'global', key: 'all', limit: 1, interval: '1m' },
    ],
  })
  const name = several.throttler.check('k').policy?.name
  expectTypeOf<'user:free' | 'user:pro' | 'global'>().toExtend<NonNullable<typeof name>>()
  // @ts-expect-error no policy has this name
  if (name === 'user:golden') return
})

test('plans are those of the limits', () => {
  throttle({ key: 'ip', interval: '1m', plans: { free: 1, pro: 2 }, plan: (req) => (req.secure ? 'pro' : 'free') })
  // @ts-expect-error there is no such plan
  throttle({ key: 'ip', interval: '1m', plans: { free: 1, pro: 2 }, plan: () => 'golden' })
})

test('wrong options do not compile', () => {
  // @ts-expect-error a number is no style of headers
  throttle({ ...one, headers: 6 })
  // @ts-expect-error an unknown key
  throttle({ ...one, key: 'user' })
  // @ts-expect-error without a limit
  throttle({ key: 'ip', interval: '1m' })
})

test('a policy for requests without a key does not compile; one for check() does', () => {
  // @ts-expect-error no key
  throttle({ limit: 10, interval: '1m' })
  // @ts-expect-error no key
  throttle({ limit: 10, algorithm: concurrency() })
  // @ts-expect-error no key
  throttle({ interval: '1m', plans: { free: 1, pro: 2 }, plan: () => 'free' as const })
  // @ts-expect-error no key
  throttle({ policies: [{ name: 'a', limit: 10, interval: '1m' }] })
  // @ts-expect-error no key
  throttle({ policies: [one, { name: 'a', limit: 10, algorithm: concurrency() }] })
  createThrottler({ policies: [{ limit: 10, interval: '1m' }] }).update([{ limit: 9, algorithm: concurrency() }])
})

test('the middleware fits, and the request carries the decision', () => {
  const app = express()
  app.use(throttle(one))
  app.get('/', throttle(createThrottler({ policies: [one] })), (req, res) => {
    expectTypeOf(req.throttle).toEqualTypeOf<HandlerDecision | undefined>()
    res.end()
  })
})

test('an estimate and settle have the names of the policies, and handlers can report their use', () => {
  const tokens = { name: 'tokens', key: 'ip', limit: 9, interval: '1m' } as const
  throttle({
    policies: [tokens],
    estimate: async (req) => ({ tokens: req.url.length }),
    settle: (_req, res) => (res.headersSent ? { tokens: 1 } : undefined),
    ttl: '1m',
  })
  // @ts-expect-error another name
  throttle({ policies: [tokens], estimate: () => ({ tokns: 1 }) })
  // @ts-expect-error no units
  throttle({ policies: [tokens], estimate: () => ({ tokens: 1 }), settle: () => 1 })
  throttle({ ...tokens, cost: () => ({ tokens: 1 }) })
  // @ts-expect-error no cost
  throttle({ ...tokens, cost: () => ({ tokens: '1' }) })
  express().get('/', (req) => {
    req.throttle?.used?.({ tokens: 2 })
    req.throttle?.settle?.()
  })
})
