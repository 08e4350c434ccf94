import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { createGuard, type Guard } from '../../src/http/guard.ts'
import { handlerStarts } from '../../src/http/handler-end.ts'
import { PlaceLimits } from '../../src/http/place-limits.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { concurrency, createThrottler } from '../../src/index.ts'
import type { WeirError } from '../../src/report/errors.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'
import { ManualTime } from './manual-time.ts'

type Res = PassThrough
type TestGuard = Guard<FakeRequest, [FakeRequest, Res]>

const HOUR = { key: 'all', interval: '1h' } as const
const TOKENS = { name: 'tokens', limit: 1_000, ...HOUR } as const
const REQUESTS = { name: 'requests', limit: 10, ...HOUR } as const
const CALLS = { name: 'calls', limit: 2, key: 'all', algorithm: concurrency(), coordination: 'local' } as const

function guardOf(options: object): { guard: TestGuard; warnings: WeirError[]; left(policy: string): number | undefined } {
  const guard = createGuard({ policies: [REQUESTS, TOKENS, CALLS], ...options } as never, fakeReader) as TestGuard
  const warnings: WeirError[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error))
  const left = (policy: string) => guard.throttler.peek('all').parts.find((part) => part.policy?.name === policy)?.remaining
  return { guard, warnings, left }
}

/** Lets a request begin as an adapter does. */
function begin(guard: TestGuard, request: FakeRequest = {}, res: Res = new PassThrough()): { call: Receipt; res: Res } {
  const call = guard.check(request, undefined, res as never) as Receipt
  if (call.allowed) guard.watch(call, res as never, [request, res])
  return { call, res }
}

async function end(res: Res): Promise<void> {
  res.destroy()
  await new Promise((resolve) => res.once('close', resolve))
}

const estimate = () => ({ requests: 1, tokens: 600, calls: 1 })

test('it reserves the estimate, and settles it once by the real use when the response has ended', async () => {
  const seen: unknown[] = []
  const settle = (...args: unknown[]) => {
    seen.push(args)
    return { tokens: 120 }
  }
  const { guard, warnings, left } = guardOf({ estimate, settle })
  const request = {}
  const { call, res } = begin(guard, request)
  expect(call).toMatchObject({ allowed: true, isOpen: true })
  expect([left('requests'), left('tokens'), left('calls')]).toEqual([9, 400, 1])
  expect(begin(guard).call).toMatchObject({ allowed: false, policy: { name: 'tokens' } })
  expect([left('requests'), left('calls')]).toEqual([9, 1])
  await end(res)
  expect(seen).toEqual([[request, res]])
  expect(call.isOpen).toBe(false)
  expect([left('requests'), left('tokens'), left('calls')]).toEqual([9, 880, 2])
  call.settle({ tokens: 900 })
  guard.throttler.release(call)
  expect([left('tokens'), left('calls')]).toEqual([880, 2])
  expect(warnings).toEqual([])
  expect(guard.side.inspected.limiters.map(({ stats }) => [stats.reservations.open, stats.reservations.settled])).toEqual([
    [0, 1],
    [0, 1],
    [0, 1],
  ])
})

test('without a result of settle the last reported use counts, or else all units', async () => {
  for (const settle of [undefined, () => undefined, async () => undefined]) {
    const { guard, warnings, left } = guardOf({ estimate: () => ({ tokens: 300 }), ...(settle && { settle }) })
    const { call, res } = begin(guard)
    call.used({ tokens: 20 })
    call.used({ tokens: 70 })
    await end(res)
    await end(begin(guard).res)
    await new Promise(setImmediate)
    expect(left('tokens')).toBe(630)
    expect(left('requests')).toBe(10)
    expect(warnings).toEqual([])
  }
})

test.each<[string, () => unknown, string]>([
  ['throws', () => expect.fail('boom'), 'threw "boom"'],
  ['rejects', () => Promise.reject(new Error('boom')), 'rejected with "boom"'],
  ['returns a number', () => 7, 'must return numbers by policy name, but returned: 7'],
  ['resolves to a list', async () => [7], 'must return numbers by policy name, but returned'],
  [
    'returns an object that throws',
    () => ({
      get tokens() {
        return expect.fail('boom')
      },
    }),
    'returned an unreadable object: boom',
  ],
])('if settle %s, reported or reserved units count, with one warning', async (_, settle, why) => {
  const { guard, warnings, left } = guardOf({ estimate, settle })
  for (const used of [{ tokens: 100 }, {}]) {
    const { call, res } = begin(guard)
    call.used(used)
    await end(res)
    await new Promise(setImmediate)
    expect(call.isOpen).toBe(false)
  }
  expect([left('tokens'), left('calls')]).toEqual([300, 2])
  expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_OPTION_FUNCTION_FAILED'])
  expect(warnings[0]?.message).toContain(`The last reported or else the reserved units count, because option "settle" ${why}`)
})

test('a settle that never answers counts as failed after callbackTimeout', async () => {
  const time = new ManualTime()
  const { guard, warnings, left } = guardOf({ estimate, clock: time, settle: () => new Promise(() => {}), callbackTimeout: 50 })
  const { call, res } = begin(guard)
  await end(res)
  expect(call.isOpen).toBe(true)
  time.advance(50)
  await new Promise(setImmediate)
  expect([call.isOpen, left('tokens')]).toEqual([false, 400])
  expect(warnings[0]?.message).toContain('did not answer within 50 ms')
})

test("if an estimate never answers, the policy's own cost counts, even if that answers later still", async () => {
  const time = new ManualTime()
  const cost = () => new Promise<number>((resolve) => time.setTimeout(() => resolve(200), 40))
  const policies = [{ ...TOKENS, cost }]
  const { guard, warnings, left } = guardOf({ policies, estimate: () => new Promise(() => {}), clock: time, callbackTimeout: 50 })
  const decision = guard.check({}, undefined, new PassThrough() as never)
  for (const wait of [50, 40]) {
    time.advance(wait)
    await new Promise(setImmediate)
  }
  expect(await decision).toMatchObject({ allowed: true })
  expect(left('tokens')).toBe(800)
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('option "estimate" did not answer within 50 ms')])
})

test.each<[string, () => unknown]>([
  ['throws', () => expect.fail('boom')],
  ['rejects', () => Promise.reject(new Error('boom'))],
  ['returns a number', () => 600],
  ['names no policy', () => ({ tokns: 600 })],
  ['returns zero', async () => ({ tokens: 0 })],
])('if estimate %s, each policy counts its own cost, with one warning', async (_, failing) => {
  const cost = async () => 200.5
  const { guard, warnings, left } = guardOf({ policies: [REQUESTS, { ...TOKENS, cost }, { ...CALLS, cost: () => 2 }], estimate: failing })
  for (let i = 1; i < 3; i++) {
    const res = new PassThrough()
    const call = (await guard.check({}, undefined, res)) as Receipt
    expect([left('requests'), left('tokens'), left('calls')]).toEqual([10 - i, 1_000 - 201 * i, 0])
    call.settle({ tokens: 201 })
    expect(left('calls')).toBe(2)
  }
  expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_OPTION_FUNCTION_FAILED'])
  expect(warnings[0]?.message).toMatch(/^Each policy counts its own "cost", because option "estimate" (threw|rejected|must return)/)
})

test('it calls estimate once for all policies of a request, and again for a request that is read again', async () => {
  let calls = 0
  const { guard } = guardOf({
    estimate: async () => {
      calls++
      return { tokens: 1.2, requests: 1 }
    },
  })
  const request = {}
  await guard.peek(request)
  expect(calls).toBe(1)
  const decision = (await guard.check(request)) as Decision
  expect(calls).toBe(2)
  expect(decision.parts.map(({ policy, cost }) => [policy?.name, cost])).toEqual([
    ['requests', 1],
    ['tokens', 2],
  ])
})

test('the reservation lasts until the handler has ended too, if the framework reports it', async () => {
  const { guard, left } = guardOf({ estimate, settle: () => ({ tokens: 5 }) })
  const { call, res } = begin(guard)
  const ended = handlerStarts(res)
  await end(res)
  expect([call.isOpen, left('calls')]).toEqual([true, 1])
  ended?.()
  ended?.()
  expect([call.isOpen, left('calls'), left('tokens')]).toEqual([false, 2, 995])
})

test('a request whose client has left before its handler starts gets null and counts in full', async () => {
  const { guard, left } = guardOf({ estimate, settle: () => ({ tokens: 0 }) })
  const res = new PassThrough()
  await end(res)
  expect(guard.check({}, undefined, res)).toBeNull()
  expect([left('tokens'), left('calls')]).toEqual([400, 2])
})

test('without a response the caller settles, as adapters do in tests without a connection', () => {
  const seen: unknown[] = []
  const { guard, left } = guardOf({ estimate, settle: (...args: unknown[]) => void seen.push(args) })
  const call = guard.check({}) as Receipt
  call.used({ tokens: 30 })
  guard.settle(call, 200, [{}, undefined as never])
  guard.settle(call, 200, [{}, undefined as never])
  expect([call.isOpen, left('tokens'), left('calls'), seen.length]).toEqual([false, 970, 2, 1])
})

test('a reservation settles itself after its ttl', async () => {
  const time = new ManualTime()
  const { guard, left } = guardOf({ estimate, clock: time, ttl: '10s', settle: () => ({ tokens: 0 }) })
  const { call, res } = begin(guard)
  time.advance(9_000)
  expect(call.isOpen).toBe(true)
  time.advance(2_000)
  expect([call.isOpen, left('tokens'), left('calls')]).toEqual([false, 400, 2])
  await end(res)
  expect(left('tokens')).toBe(400)
})

test('a request that passes two guards of a throttler is reserved once', async () => {
  const throttler = createThrottler({ policies: [TOKENS] })
  let settled = 0
  const make = () =>
    createGuard({ throttler, estimate: () => ({ tokens: 300 }), settle: () => void settled++ } as never, fakeReader) as TestGuard
  const [one, two] = [make(), make()]
  const { call, res } = begin(one)
  expect(two.check({}, call, res)).toBeUndefined()
  expect(throttler.peek('all').remaining).toBe(700)
  await end(res)
  expect(settled).toBe(1)
})

test('a dry run reserves the requests that it would allow, and nothing for the others', async () => {
  const { guard, left } = guardOf({ estimate, dryRun: true, settle: () => ({ tokens: 100 }) })
  const [first, second] = [begin(guard), begin(guard)]
  expect([first.call, second.call].map(({ allowed, isOpen, dryRun }) => [allowed, isOpen, dryRun])).toEqual([
    [true, true, false],
    [true, false, true],
  ])
  second.call.used({ tokens: 900 })
  await Promise.all([end(first.res), end(second.res)])
  expect([left('requests'), left('tokens'), left('calls')]).toEqual([9, 900, 2])
})

test('skipped and denied requests reserve nothing', () => {
  const { guard, left } = guardOf({ estimate, skip: ({ user }: FakeRequest) => user === 'skipped', deny: () => true })
  expect(guard.check({ user: 'skipped' })).toBeUndefined()
  expect(guard.check({})).toMatchObject({ allowed: false, reason: 'denied' })
  expect([left('requests'), left('tokens'), left('calls')]).toEqual([10, 1_000, 2])
})

test('an estimate above maxReservation never fits', () => {
  const { guard } = guardOf({
    policies: [{ ...TOKENS, maxReservation: 500 }],
    estimate: ({ user }: FakeRequest) => ({ tokens: Number(user) }),
  })
  expect(guard.check({ user: 501 })).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  expect(guard.check({ user: 499.5 })).toMatchObject({ allowed: true, remaining: 500 })
})

test.each([
  [{ settle: () => {} }, 'WEIR_MISSING_OPTION', 'Option "settle" has no effect without "estimate"'],
  [{ ttl: '1m' }, 'WEIR_UNKNOWN_OPTION', 'Unknown option "ttl". Did you mean "interval"?'],
  [{ estimate: { tokens: 1 } }, 'WEIR_INVALID_OPTION', 'a function'],
  [{ estimate, settle: 1 }, 'WEIR_INVALID_OPTION', 'a function'],
  [{ estimate, ttl: 1 }, 'WEIR_INVALID_OPTION', 'ttl'],
  [{ estimate, skipFailedRequests: true }, 'WEIR_INVALID_OPTION', 'Use either "estimate" or "skipFailedRequests", not both'],
  [{ estimate, skipSuccessfulRequests: true }, 'WEIR_INVALID_OPTION', 'Use either "estimate" or "skipSuccessfulRequests", not both'],
])('%o throws at construction', (options, code, text) => {
  expect(() => guardOf(options)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(text) }))
})

test('a place with its own limits does not inherit the estimate, and may have one instead of refunds', () => {
  const words = { place: 'Route', whole: 'the plugin', none: '' }
  const placesOf = (options: object) => new PlaceLimits({ policies: [TOKENS], ...options } as never, fakeReader, words)
  const places = placesOf({ estimate: () => ({ tokens: 100 }), settle: () => ({ tokens: 1 }), ttl: '1m' })
  const one = places.guard(places.add({ ...REQUESTS, skipFailedRequests: true } as never, 'GET /'))
  expect([places.general.reserves, one.reserves]).toEqual([true, false])
  expect(one.check({})).toMatchObject({ policy: { name: 'requests' }, remaining: 9 })
  const refunding = placesOf({ skipFailedRequests: true, requestWasSuccessful: () => true })
  const two = refunding.guard(refunding.add({ ...REQUESTS, estimate: () => ({ requests: 2 }) } as never, 'GET /'))
  expect(two.reserves).toBe(true)
  expect(two.check({})).toMatchObject({ isOpen: true, remaining: 8 })
})

test('a store that can not keep reservations of a central policy throws, and leaves no name behind', () => {
  const store = memoryStore()
  const without = Object.create(store, { reserves: { value: undefined } }) as typeof store
  const central = { ...TOKENS, coordination: 'central' }
  const options = { store: without, policies: [central], estimate: () => ({ tokens: 1 }) }
  expect(() => guardOf(options)).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('tokens') }),
  )
  expect(() => guardOf({ ...options, policies: [{ ...central, limit: 7 }], estimate: undefined })).not.toThrow()
  expect(() => guardOf({ ...options, policies: [{ ...TOKENS, name: 'background' }], estimate: () => ({ background: 1 }) })).not.toThrow()
})
