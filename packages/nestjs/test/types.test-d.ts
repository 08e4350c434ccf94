import type { ExecutionContext } from '@nestjs/common'
import { createThrottler } from '@weir/core'
import { expectTypeOf, test } from 'vitest'
import {
  header,
  InjectThrottler,
  paths,
  SkipThrottle,
  Throttle,
  ThrottleDecision,
  type ThrottledException,
  ThrottleModule,
} from '../src/index.ts'

const one = { key: 'ip', limit: 1, interval: '1m' } as const

test('functions of the options get the execution context', () => {
  ThrottleModule.forRoot({
    ...one,
    key: (context) => {
      expectTypeOf(context).toEqualTypeOf<ExecutionContext>()
      return context.switchToHttp().getRequest().user?.id
    },
    skip: (context) => context.getType() !== 'http',
    handler: (context, rejection) => {
      expectTypeOf(context).toEqualTypeOf<ExecutionContext>()
      context.switchToHttp().getResponse().send(rejection.body)
    },
  })
  ThrottleModule.forRoot({ policies: [{ name: 'a', ...one, match: paths('/api/*rest'), key: ['ip', header('x-key')] }] }, { guard: false })
  ThrottleModule.forRoot(createThrottler({ policies: [one] }))
  ThrottleModule.forRootAsync({ inject: [Date], useFactory: async (date: Date) => ({ ...one, limit: date.getFullYear() }) })
})

test('names of policies are a union in decisions', () => {
  ThrottleModule.forRoot({
    policies: [
      { name: 'user', ...one },
      { name: 'global', ...one },
    ],
    onRejected: (_context, decision) => expectTypeOf(decision.policy?.name).toEqualTypeOf<'user' | 'global' | undefined>(),
  })
})

test('wrong options do not compile', () => {
  // @ts-expect-error a number is no style of headers
  ThrottleModule.forRoot({ ...one, headers: 6 })
  // @ts-expect-error an unknown key
  ThrottleModule.forRoot({ ...one, key: 'user' })
  // @ts-expect-error no key
  ThrottleModule.forRoot({ limit: 1, interval: '1m' })
  // @ts-expect-error no key
  ThrottleModule.forRootAsync({ useFactory: () => ({ limit: 1, interval: '1m' }) })
  // @ts-expect-error a limit is a number
  Throttle({ limit: '5' })
  // @ts-expect-error true or false
  SkipThrottle({ default: true })
})

test('decorators stand where those of NestJS do', () => {
  expectTypeOf(Throttle({ limit: 1 })).toExtend<MethodDecorator & ClassDecorator>()
  expectTypeOf(SkipThrottle()).toExtend<MethodDecorator & ClassDecorator>()
  expectTypeOf(ThrottleDecision()).toExtend<ParameterDecorator>()
  expectTypeOf(InjectThrottler()).toExtend<ParameterDecorator>()
  expectTypeOf<ThrottledException['decision']['retryAfterMs']>().toEqualTypeOf<number>()
})
