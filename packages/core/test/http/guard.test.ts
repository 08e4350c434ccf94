import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import type { ThrottleInput } from '../../src/http/adapter-options.ts'
import type { Rejection } from '../../src/http/answer/rejection.ts'
import { createGuard } from '../../src/http/guard.ts'
import { addresses } from '../../src/http/request/address-list.ts'
import { paths } from '../../src/http/request/paths.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import type { WeirError } from '../../src/report/errors.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { thrownBy } from '../support/nodes.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'
import { ManualTime } from './manual-time.ts'

type Input = ThrottleInput<FakeRequest, readonly [FakeRequest]>

function guardOf(options: object) {
  const guard = createGuard<FakeRequest, readonly [FakeRequest]>({ clock: new ManualTime(0), ...options } as unknown as Input, fakeReader)
  const warnings: WeirError[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error))
  // No result is a promise, because all functions in these tests answer at once.
  const check = (request: FakeRequest, earlier?: Decision) => guard.check(request, earlier) as Decision | undefined
  const reject = (request: FakeRequest, decision: Decision) => guard.reject(request, decision) as Rejection
  return { guard: { throttler: guard.throttler, owned: guard.owned, check, reject }, warnings }
}

const one = { key: 'route', limit: 1, interval: '1m' }

describe('what belongs to the adapter is told from what belongs to the throttler', () => {
  test('a throttler is shared', () => {
    const throttler = createThrottler({ policies: [{ key: 'route', limit: 5, interval: '1m' }], clock: new ManualTime(0) })
    const first = createGuard(throttler, fakeReader)
    const second = createGuard({ throttler, headers: false }, fakeReader)
    expect(first.throttler).toBe(throttler)
    expect(first.owned).toBe(false)
    expect(first.check({})).toMatchObject({ remaining: 4 })
    expect(second.check({})).toMatchObject({ remaining: 3 })
  })

  test.each<[object, string, string]>([
    [{ ...one, skipp: true }, 'WEIR_UNKNOWN_OPTION', 'Did you mean "skip"?'],
    [{ ...one, onRejectd: () => {} }, 'WEIR_UNKNOWN_OPTION', 'Did you mean "onRejected"?'],
    [{ ...one, whitelist: [] }, 'WEIR_UNKNOWN_OPTION', 'Did you mean "allow"?'],
    [{ ...one, maxkeys: 5 }, 'WEIR_UNKNOWN_OPTION', 'Did you mean "maxKeys"?'],
    [{ ...one, intervall: 5 }, 'WEIR_UNKNOWN_OPTION', 'Did you mean "interval"?'],
    [{ ...one, colour: 5 }, 'WEIR_UNKNOWN_OPTION', 'A policy has: name, limit'],
    [{ policies: [one], colour: 5 }, 'WEIR_UNKNOWN_OPTION', 'A policy has: name, limit'],
    [{ ...one, skipFailed: true }, 'WEIR_UNKNOWN_OPTION', 'skipFailedRequests'],
    [{ ...one, windowMs: 5 }, 'WEIR_UNKNOWN_OPTION', 'windowMs'],
    [{ policies: [one], limit: 5 }, 'WEIR_UNKNOWN_OPTION', 'limit'],
    [{ key: 'ip', limit: 0, interval: '1m' }, 'WEIR_INVALID_OPTION', 'limit'],
    [{ key: 'ip', interval: '1m' }, 'WEIR_MISSING_OPTION', 'limit'],
    [{ ...one, headers: 'draft-10' }, 'WEIR_INVALID_OPTION', 'headers'],
    [{ ...one, statusCode: 200 }, 'WEIR_INVALID_OPTION', 'statusCode'],
    [{ ...one, throwOnReject: 'ignore' }, 'WEIR_INVALID_OPTION', 'throwOnReject'],
    [{ ...one, skip: 'no' }, 'WEIR_INVALID_OPTION', 'skip'],
    [{ ...one, dryRun: 'yes' }, 'WEIR_INVALID_OPTION', 'dryRun'],
    [{ ...one, ipv6Subnet: 200 }, 'WEIR_INVALID_OPTION', 'ipv6Subnet'],
    [{ ...one, key: 'user' }, 'WEIR_INVALID_OPTION', 'key'],
    [{ ...one, match: '/login' }, 'WEIR_INVALID_OPTION', 'paths("POST /login"'],
    [{ ...one, allow: ['10.0.0.0/8'] }, 'WEIR_INVALID_OPTION', '"allow" is ["10.0.0.0/8"]. Use addresses('],
    [{ ...one, deny: '10.0.0.0/8' }, 'WEIR_INVALID_OPTION', 'Import it: import { addresses } from'],
    [{ ...one, handler: () => {}, message: 'x' }, 'WEIR_INVALID_OPTION', 'handler'],
    [{ ...one, handler: () => {}, throwOnReject: true }, 'WEIR_INVALID_OPTION', 'Use either "handler" or "throwOnReject: true"'],
    [{ ...one, message: 'x', throwOnReject: true }, 'WEIR_INVALID_OPTION', 'Use either "message" or "throwOnReject: true"'],
    [{ ...one, message: Promise.resolve('x') }, 'WEIR_INVALID_OPTION', 'message'],
    [{ ...one, message: null }, 'WEIR_INVALID_OPTION', 'message'],
    [{ ...one, requestWasSuccessful: () => true }, 'WEIR_MISSING_OPTION', 'requestWasSuccessful'],
  ])('%j is rejected', (options, code, name) => {
    expect(() => guardOf(options)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(name) }))
  })

  describe('a policy without a key is rejected', () => {
    const keyless = { limit: 10, interval: '1m' } as const
    const messageOf = (run: () => unknown) => {
      const error = thrownBy(run) as WeirError
      expect(error.code).toBe('WEIR_MISSING_OPTION')
      return error.message
    }

    test('with the choices, a line each', () => {
      expect(messageOf(() => guardOf({ ...keyless, name: 'login' })).split('\n')).toEqual([
        'Policy "login" has no "key". Choose what requests are counted by:',
        "  key: 'ip'                  one limit for each client address",
        expect.stringMatching(
          /^ {2}key: header\('x-api-key'\) .*import \{ header \} from your adapter's package, such as '@weir\/express'$/,
        ),
        '  key: (req) => req.user.id  one for each value that your function returns',
        "  key: 'route'               one for each route: all clients share it",
        "  key: 'all'                 one for all requests: all clients share it",
        "A list combines several, such as key: ['ip', 'route']. See @weir/core/docs/errors/weir_missing_option.md",
      ])
    })

    test.each<[string, object, string]>([
      ['without a name', keyless, 'The policy'],
      ['one of several', { policies: [one, keyless] }, 'policies[1]'],
      ['with plans', { name: 'user', interval: '1m', plans: { free: 1 }, plan: () => 'free' }, 'Policy "user"'],
      ['for requests in flight', { limit: 1, algorithm: concurrency() }, 'The policy'],
      ['with an undefined key', { ...keyless, key: undefined }, 'The policy'],
      ['with a name that tries to add a line', { ...keyless, name: 'a\nb' }, 'Policy "a\\nb"'],
    ])('%s', (_, options, what) => {
      expect(messageOf(() => guardOf(options)).split('\n')[0]).toBe(`${what} has no "key". Choose what requests are counted by:`)
    })

    test('before its throttler has taken the names at the store', () => {
      const store = memoryStore()
      messageOf(() =>
        guardOf({
          policies: [
            { ...one, name: 'a' },
            { ...keyless, name: 'b' },
          ],
          store,
        }),
      )
      expect(() => createThrottler({ policies: [{ name: 'a', limit: 7, interval: '1h' }], store })).not.toThrow()
    })

    test('of a throttler that was made before, which goes on alone', () => {
      const throttler = createThrottler({ policies: [{ ...keyless, name: 'mine' }], clock: new ManualTime(0) })
      expect(messageOf(() => createGuard(throttler, fakeReader))).toContain('Policy "mine" has no "key"')
      expect(messageOf(() => createGuard({ throttler }, fakeReader))).toContain('Policy "mine" has no "key"')
      throttler.update([{ ...keyless, name: 'mine', limit: 2 }])
      expect(throttler.check('a')).toMatchObject({ limit: 2 })
    })

    test('of an update, once a guard decides by the throttler; nothing has changed then', () => {
      const throttler = createThrottler<string, FakeRequest>({ policies: [{ ...keyless, key: 'all' }], clock: new ManualTime(0) })
      const guard = createGuard(throttler, fakeReader)
      const { version } = adapterOf(throttler)
      expect(
        messageOf(() =>
          throttler.update([
            { ...keyless, key: 'all' },
            { ...keyless, name: 'b' },
          ]),
        ),
      ).toContain('Policy "b" has no "key"')
      expect(adapterOf(throttler).version).toBe(version)
      expect(guard.check({})).toMatchObject({ allowed: true, remaining: 9, parts: [{}] })
    })
  })

  test('beside a throttler its options are rejected', () => {
    const throttler = createThrottler({ policies: [{ key: 'route', limit: 5, interval: '1m' }] })
    for (const extra of [{ limit: 1 }, { maxKeys: 5 }]) {
      expect(() => createGuard({ throttler, ...extra } as unknown as Input, fakeReader)).toThrow(
        expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION' }),
      )
    }
    expect(() => createGuard({ throttler: {} } as unknown as Input, fakeReader)).toThrow(
      expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }),
    )
    for (const nothing of [undefined, null, 5, 'x']) {
      expect(() => createGuard(nothing as unknown as Input, fakeReader)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
    }
  })
})

describe('a rejection', () => {
  test('has status, headers and a body', () => {
    const { guard } = guardOf(one)
    guard.check({})
    const decision = guard.check({}) as Decision
    const rejection = guard.reject({}, decision)
    expect(decision.allowed).toBe(false)
    expect(rejection).toMatchObject({ status: 429, type: 'application/problem+json' })
    expect(rejection.headers).toEqual({
      'RateLimit-Policy': '"default";q=1;w=60',
      RateLimit: expect.stringMatching(/^"default";r=0;t=\d+$/),
      'Retry-After': expect.stringMatching(/^[1-9]\d*$/),
      'Cache-Control': 'no-store',
    })
  })

  test('Retry-After is true: the only client of a key that waits so long is let in', () => {
    const clock = new ManualTime(12_345)
    const { guard } = guardOf({ ...one, limit: 3, clock, cooldown: '90s' })
    for (let i = 0; i < 3; i++) guard.check({})
    const rejection = guard.reject({}, guard.check({}) as Decision)
    clock.advance(Number(rejection.headers['Retry-After']) * 1000)
    expect(guard.check({})?.allowed).toBe(true)
  })

  test.each([
    ['the same rules', [{}]],
    ['another limit', [{ limit: 5 }], [{ limit: 7 }]],
    ['one policy less', [{}], [{ name: 'second', limit: 3 }, {}]],
    ['one policy more', [{ name: 'second', limit: 3 }, {}]],
  ])('counts a request once that passes two places with an update between them: %s', (_, after, before: object[] = [{}]) => {
    const clock = new ManualTime(0)
    const rules = (all: object[]) => all.map((rule) => ({ name: 'first', limit: 5, interval: '1m', key: 'all', ...rule })) as never
    const throttler = createThrottler({ policies: rules(before), clock })
    const [first, second] = [createGuard(throttler, fakeReader), createGuard(throttler, fakeReader)]
    const decided = first.check({}) as Decision
    throttler.update(rules(after))
    throttler.update(rules(after))
    expect(second.check({}, decided)).toBeUndefined()
    expect(throttler.peek('all').parts.find(({ policy }) => policy?.name === 'first')).toMatchObject({ remaining: 4 })
  })

  test('counts a request again that another throttler has counted by the same rules, or whose policy is another one now', () => {
    const policies = [{ limit: 5, interval: '1m', key: 'all' as string }] as [PolicyOptions<FakeRequest>]
    const make = () => createThrottler({ policies, clock: new ManualTime(0) })
    const [throttler, other] = [make(), make()]
    const decided = createGuard(other, fakeReader).check({}) as Decision
    const guard = createGuard(throttler, fakeReader)
    expect(guard.check({}, decided)).toMatchObject({ remaining: 4 })
    const again = guard.check({}) as Decision
    throttler.update([{ ...policies[0], interval: '2m' }])
    expect(guard.check({}, again)).toMatchObject({ remaining: 4 })
  })

  test('repeats an earlier one only where that is true of it', () => {
    const clock = new ManualTime(12_345)
    const { guard } = guardOf({ ...one, clock, key: 'ip' })
    const rejected = (request: FakeRequest) => guard.reject(request, guard.check(request) as Decision)
    guard.check({ ip: '192.0.2.1' })
    const first = rejected({ ip: '192.0.2.1' })
    const headers = { ...first.headers }
    // A handler may add to the headers of its rejection.
    Object.assign(first.headers, { 'Retry-After': 'never' })
    expect(rejected({ ip: '192.0.2.1' })).toMatchObject({ headers, body: first.body })
    expect(rejected({ ip: '192.0.2.1', headers: { accept: 'text/html' } })).toMatchObject({ headers, type: 'text/html; charset=utf-8' })
    clock.advance(10_000)
    const later = rejected({ ip: '192.0.2.1' })
    expect(later.headers).toMatchObject({ 'Retry-After': '38', RateLimit: '"default";r=0;t=38' })
    expect(later.body).toContain('in 38 seconds')
    guard.throttler.block('192.0.2.1', '5m')
    expect(rejected({ ip: '192.0.2.1' }).headers['Retry-After']).toBe('300')
  })

  test.each<[unknown, string, string]>([
    ['Slow down', 'text/plain; charset=utf-8', 'Slow down'],
    [{ error: 'slow' }, 'application/json; charset=utf-8', '{"error":"slow"}'],
    [(_: FakeRequest, decision: Decision) => `limit ${decision.limit}`, 'text/plain; charset=utf-8', 'limit 1'],
    [() => ({ a: 1 }), 'application/json; charset=utf-8', '{"a":1}'],
  ])('message %j replaces the body', (message, type, body) => {
    const { guard } = guardOf({ ...one, message })
    guard.check({})
    expect(guard.reject({}, guard.check({}) as Decision)).toMatchObject({ type, body })
  })

  test.each<[unknown]>([
    [
      () => {
        throw new Error('boom')
      },
    ],
    [() => 5n],
    [() => undefined],
  ])('a message that fails leaves the standard body: %s', (message) => {
    const { guard, warnings } = guardOf({ ...one, message })
    guard.check({})
    expect(guard.reject({}, guard.check({}) as Decision).type).toBe('application/problem+json')
    expect(warnings).toHaveLength(1)
  })
})

describe('requests that are not counted', () => {
  test.each<[object, FakeRequest]>([
    [{ skip: (request: FakeRequest) => request.path === '/health' }, { path: '/health' }],
    [{ skipPreflight: true }, { method: 'OPTIONS', headers: { origin: 'https://a.example', 'access-control-request-method': 'PUT' } }],
    [{ enabled: () => false }, {}],
    [{ enabled: false }, {}],
    [{ allow: addresses('192.0.2.0/24') }, { ip: '::ffff:192.0.2.77' }],
    [{ allow: addresses('2001:db8::/32') }, { ip: '2001:DB8:1::7' }],
    [{ allow: (request: FakeRequest) => request.user === 'root' }, { user: 'root' }],
    [{ match: paths('/api/*rest') }, { path: '/' }],
  ])('%j', (options, request) => {
    const { guard } = guardOf({ ...one, ...options })
    for (let i = 0; i < 3; i++) expect(guard.check(request)).toBeUndefined()
  })

  test.each<[object]>([
    [
      {
        skip: () => {
          throw new Error('boom')
        },
      },
    ],
    [{ skip: () => 'yes' }],
    [
      {
        enabled: () => {
          throw new Error('boom')
        },
      },
    ],
    [{ enabled: () => undefined }],
    [{ allow: () => 1 }],
    [{ allow: addresses('192.0.2.0/24') }],
  ])('an answer that is none excuses nobody: %j', (options) => {
    const { guard } = guardOf({ ...one, ...options })
    guard.check({ ip: '198.51.100.1' })
    expect(guard.check({ ip: '198.51.100.1' })?.allowed).toBe(false)
  })

  test('a throttler counts a request once, in however many places it stands', () => {
    const { guard } = guardOf({ key: 'route', limit: 5, interval: '1m' })
    const decision = guard.check({})
    expect(guard.check({}, decision)).toBeUndefined()
    expect(guard.check({})?.remaining).toBe(3)
  })
})

test('a denied request is rejected with 403, and not told to come back', () => {
  const { guard } = guardOf({ ...one, deny: addresses('203.0.113.0/24') })
  const decision = guard.check({ ip: '203.0.113.9' }) as Decision
  expect(decision).toMatchObject({ allowed: false, reason: 'denied' })
  const rejection = guard.reject({}, decision)
  expect(rejection.status).toBe(403)
  expect(rejection.headers).toEqual({ 'Cache-Control': 'no-store' })
  expect(rejection.body).not.toContain('again')
})

test('a dry run decides and reports, and rejects nobody', () => {
  const onRejected = vi.fn()
  const { guard } = guardOf({ ...one, dryRun: true, onRejected })
  guard.check({})
  expect(guard.check({})).toMatchObject({ allowed: true, dryRun: true, reason: 'limit' })
  expect(onRejected).toHaveBeenCalledOnce()
})

test('onRejected is told of each rejection, and cannot break it', () => {
  const onRejected = vi.fn(() => {
    throw new Error('boom')
  })
  const { guard, warnings } = guardOf({ ...one, onRejected })
  for (let i = 0; i < 4; i++) guard.check({ path: '/a' })
  expect(onRejected).toHaveBeenCalledTimes(3)
  expect(warnings).toHaveLength(1)
})

test('a closed throttler lets requests pass, and says so once', async () => {
  const { guard, warnings } = guardOf(one)
  await guard.throttler.close()
  for (let i = 0; i < 5; i++) expect(guard.check({})).toBeUndefined()
  expect(warnings).toMatchObject([{ code: 'WEIR_CLOSED' }])
})

describe('the end of a response that is only an emitter', () => {
  function watched(options: object) {
    const guard = createGuard<FakeRequest, readonly [FakeRequest]>(
      { clock: new ManualTime(0), limit: 5, interval: '1m', key: 'all', ...options } as unknown as Input,
      fakeReader,
    )
    const warnings: WeirError[] = []
    guard.throttler.on('warning', ({ error }) => warnings.push(error))
    const response = Object.assign(new EventEmitter(), { statusCode: 200 })
    const decision = guard.check({}) as Decision
    guard.watch(decision, response as unknown as ServerResponse, [{}])
    return { response, remaining: () => guard.throttler.peek('').remaining, warnings }
  }

  test('is known by its events', () => {
    const sent = watched({ skipSuccessfulRequests: true })
    expect(sent.remaining()).toBe(4)
    sent.response.emit('finish')
    sent.response.emit('close')
    expect(sent.remaining()).toBe(5)
    const failed = watched({ skipFailedRequests: true })
    failed.response.emit('finish')
    expect(failed.remaining()).toBe(4)
    const broken = watched({ skipFailedRequests: true })
    broken.response.emit('close')
    expect(broken.remaining()).toBe(5)
    const error = watched({ skipFailedRequests: true })
    error.response.emit('error', new Error('broken'))
    expect(error.remaining()).toBe(5)
    expect([sent, failed, broken, error].flatMap(({ warnings }) => warnings)).toEqual([])
  })

  test('can not be known of what tells no events, and that breaks nothing', () => {
    const guard = createGuard<FakeRequest, readonly [FakeRequest]>(
      { clock: new ManualTime(0), ...one, skipFailedRequests: true } as unknown as Input,
      fakeReader,
    )
    const warnings: WeirError[] = []
    guard.throttler.on('warning', ({ error }) => warnings.push(error))
    guard.watch(guard.check({}) as Decision, {} as ServerResponse, [{}])
    expect(warnings).toMatchObject([{ code: 'WEIR_WARN_OPTION_FUNCTION_FAILED' }])
  })
})

test('a request for which the queue has no room is rejected by a decision without a delay', async () => {
  const options = { key: 'all', limit: 1, interval: '1h', algorithm: leakyBucket({ burst: 3 }), queue: { maxWaiting: 1, maxWait: '5h' } }
  const guard = createGuard<FakeRequest, readonly [FakeRequest]>(options as unknown as Input, fakeReader)
  expect(await guard.check({})).toMatchObject({ allowed: true, delayMs: 0 })
  const waits = Promise.resolve(guard.check({})).catch(() => {})
  const decision = await guard.check({})
  expect(decision).toMatchObject({ allowed: false, reason: 'limit', cost: 0, delayMs: 0 })
  expect(decision?.retryAfterMs).toBeGreaterThan(0)
  await guard.throttler.close()
  await waits
})
