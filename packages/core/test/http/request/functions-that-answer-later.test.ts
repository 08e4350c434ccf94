import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import type { Decision } from '../../../src/decide/decision.ts'
import type { KeyOption } from '../../../src/decide/request-options.ts'
import type { ThrottleInput } from '../../../src/http/adapter-options.ts'
import { createGuard } from '../../../src/http/guard.ts'
import { paths } from '../../../src/http/request/paths.ts'
import { type RequestRule, Rules } from '../../../src/http/request/rules.ts'
import type { WeirError } from '../../../src/report/errors.ts'

import { type FakeRequest, fakeReader } from '../fake-request.ts'
import { ManualTime } from '../manual-time.ts'

type Args = readonly [FakeRequest]

function guardOf(options: object) {
  const clock = new ManualTime(0)
  const guard = createGuard<FakeRequest, Args>({ clock, ...options } as unknown as ThrottleInput<FakeRequest, Args>, fakeReader)
  const warnings: WeirError[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error))
  return { guard, clock, warnings }
}

/** The keys and costs that were read, at once or later. */
async function read(rules: Rules<FakeRequest>, request: FakeRequest) {
  const applies = rules.evaluate(request)
  if (typeof applies === 'object') return (await applies) ?? { keys: [], costs: [], limits: undefined, applying: [] }
  return { keys: [...rules.keys], costs: [...rules.costs], limits: rules.limits?.slice(), applying: rules.applying.slice(0, rules.applied) }
}

const one = { key: 'route', limit: 1, interval: '1h' } as const
const tick = () => new Promise((resolve) => setImmediate(resolve))

test.each([
  0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b0101, 0b1010, 0b0011, 0b1100, 0b0111, 0b1110, 0b1111, 0b10000, 0b11000, 0b10010, 0b11111,
])('whichever of its functions answer later, a request is read alike: %s', async (later) => {
  const asked: string[] = []
  const answer = <T>(place: number, name: string, value: T): T => {
    asked.push(name)
    return (later & (1 << place) ? tick().then(() => value) : value) as T
  }
  const list: RequestRule<FakeRequest>[] = [
    { name: 'before', key: 'all' },
    {
      name: 'one',
      match: () => answer(0, 'match', true),
      key: ['ip', () => answer(1, 'key', 'a|b'), 'route', () => answer(2, 'key', 7)] as KeyOption<FakeRequest>,
      cost: () => answer(3, 'cost', 5),
      limit: () => answer(4, 'limit', 9),
    },
    { name: 'not', match: () => answer(0, 'not', false), key: () => answer(1, 'never', 'x') },
    { name: 'after', key: (request) => request.user as string, cost: 3 },
  ]
  const reported: WeirError[] = []
  const rules = new Rules(list, fakeReader, { report: (error) => reported.push(error) })
  const reading = read(rules, { ip: '192.0.2.1', user: 'ann', path: '/x' })
  // Another request comes while the first one waits.
  const other = read(rules, { ip: '192.0.2.2', user: 'bob', path: '/y' })
  expect(await reading).toEqual({
    keys: ['all', '192.0.2.1|a\\|b|GET /x|7', undefined, 'ann'],
    costs: [1, 5, 1, 3],
    limits: [undefined, 9, undefined, undefined],
    applying: [0, 1, 3],
  })
  expect((await other).keys).toEqual(['all', '192.0.2.2|a\\|b|GET /y|7', undefined, 'bob'])
  expect(asked.sort()).toEqual(['cost', 'cost', 'key', 'key', 'key', 'key', 'limit', 'limit', 'match', 'match', 'not', 'not'])
  expect(reported).toEqual([])
})

test('costs by policy name may come later, and leave the other policies uncounted', async () => {
  const cost = async () => ({ requests: 2, tokens: 900 })
  const rules = new Rules<FakeRequest>(
    ['requests', 'usd', 'tokens'].map((name) => ({ name, key: 'all', cost })),
    fakeReader,
    { report: (error) => expect.fail(error.message) },
  )
  expect(await read(rules, {})).toMatchObject({ keys: ['all', undefined, 'all'], costs: [2, 1, 900], applying: [0, 2] })
})

test('a plan that comes later is asked for once for all policies of its group', async () => {
  let asked = 0
  const { guard } = guardOf({
    interval: '1h',
    key: 'all',
    plans: { small: 1, middle: 2, large: 3 },
    plan: async (request: FakeRequest) => {
      asked++
      return request.user
    },
  })
  const limits = await Promise.all(['small', 'large', 'middle'].map(async (user) => (await guard.check({ user }))?.limit))
  expect(limits).toEqual([1, 3, 2])
  expect(asked).toBe(3)
})

test('a guard returns a promise only for what has to wait', async () => {
  const { guard } = guardOf({ ...one, limit: 9, key: (request: FakeRequest) => (request.user === 'slow' ? tick().then(() => 'a') : 'a') })
  expect(guard.check({})).toMatchObject({ remaining: 8 })
  const waiting = guard.check({ user: 'slow' })
  expect(waiting).toBeInstanceOf(Promise)
  expect(guard.check({})).toMatchObject({ remaining: 7 })
  expect(await waiting).toMatchObject({ remaining: 6 })
})

test('a request that waits while the rules are swapped is counted by the new ones', async () => {
  const { guard } = guardOf({ ...one, name: 'old', key: () => tick().then(() => 'ann') })
  const waiting = guard.check({ user: 'ann' })
  guard.throttler.update([
    { name: 'first', limit: 5, interval: '1h', key: 'all', match: paths('/elsewhere') },
    { name: 'second', limit: 7, interval: '1h', key: (request) => `user ${String(request.user)}` },
  ])
  // By then the guard already uses the new rules, because of another request.
  guard.check({ user: 'bob' })
  const decision = (await waiting) as Decision
  expect(decision).toMatchObject({ limit: 7, key: 'user ann', remaining: 6 })
  expect(decision.policy?.name).toBe('second')
})

test('a request that waits while the throttler is closed passes', async () => {
  const { guard, warnings } = guardOf({ ...one, key: () => tick().then(() => 'ann') })
  const waiting = guard.check({})
  await guard.throttler.close()
  expect(await waiting).toBeUndefined()
  expect(warnings).toMatchObject([{ code: 'WEIR_CLOSED' }])
})

test('a route that can not be read lets a waiting request pass, as any other', async () => {
  const reader = {
    ...fakeReader,
    route: () => {
      throw new Error('router')
    },
  }
  const input = { ...one, clock: new ManualTime(0), key: [() => Promise.reject(new Error('key')), 'route'] }
  const guard = createGuard<FakeRequest, Args>(input as unknown as ThrottleInput<FakeRequest, Args>, reader)
  guard.throttler.on('warning', () => {})
  expect(await guard.check({})).toBeUndefined()
})

test('functions wait together, and each has its whole time', async () => {
  const never = () => new Promise<never>(() => {})
  const { guard, clock, warnings } = guardOf({
    callbackTimeout: 50,
    skip: never,
    policies: [
      { name: 'a', ...one, match: never, key: [never, never], cost: never },
      { name: 'b', ...one, match: never, key: never, cost: never },
    ],
  })
  const waiting = guard.check({ ip: '192.0.2.1' }) as Promise<Decision>
  let settled = false
  void waiting.then(() => {
    settled = true
  })
  // First skip, then match, then keys and costs together.
  for (const over of [false, false, true]) {
    clock.advance(50)
    await tick()
    expect(settled).toBe(over)
  }
  expect((await waiting).parts.map(({ key, cost }) => [key, cost])).toEqual([
    ['\u0001192.0.2.1|\u0001192.0.2.1', 1],
    ['\u0001192.0.2.1', 1],
  ])
  expect(warnings).toHaveLength(7)
})

test.each([0, -1, 60_001, 'soon', Number.NaN, null])('a callbackTimeout of %s is rejected', (callbackTimeout) => {
  expect(() => guardOf({ ...one, callbackTimeout })).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('callbackTimeout') }),
  )
})

test('a handler that fails leaves the response to the adapter only if nothing has been sent', async () => {
  const destroyed: boolean[] = []
  const response = (headersSent: boolean) =>
    ({ headersSent, writableEnded: false, on: () => {}, destroy: () => destroyed.push(headersSent) }) as unknown as ServerResponse
  const handled = async (handler: () => unknown, headersSent: boolean) => {
    const { guard, clock } = guardOf({ ...one, handler })
    guard.check({})
    const rejection = await guard.reject({}, guard.check({}) as Decision)
    const became = guard.handle(rejection, [{}], response(headersSent))
    await tick()
    clock.advance(1_000)
    return became
  }
  const fail = () => {
    throw new Error('boom')
  }
  expect(await handled(() => 5, false)).toBe('answered')
  expect(await handled(async () => 5, false)).toBe('answered')
  expect(await handled(fail, false)).toBe('failed')
  expect(await handled(async () => fail(), false)).toBe('failed')
  expect(await handled(() => new Promise(() => {}), false)).toBe('failed')
  expect(destroyed).toEqual([])
  expect(await handled(() => new Promise(() => {}), true)).toBe('left')
  expect(destroyed).toEqual([])
  expect(await handled(fail, true)).toBe('left')
  expect(await handled(async () => fail(), true)).toBe('left')
  expect(destroyed).toEqual([true, true])
})
