import { describe, expect, test } from 'vitest'
import type { ThrottleInput } from '../../../src/http/adapter-options.ts'
import { createGuard } from '../../../src/http/guard.ts'
import { createThrottler, fixedWindow, memoryStore, slidingLog, slidingWindow, tokenBucket } from '../../../src/index.ts'
import type { WeirError } from '../../../src/report/errors.ts'
import { type FakeRequest, fakeReader } from '../fake-request.ts'
import { ManualTime } from '../manual-time.ts'

type Args = readonly [FakeRequest]

const LIMITS: Readonly<Record<string, number>> = { ann: 2, bob: 3, none: 0, all: Number.POSITIVE_INFINITY }
const byUser = (request: FakeRequest) => LIMITS[String(request.user)] as number
const rule = { name: 'user', interval: '1h', key: (request: FakeRequest) => String(request.user), limit: byUser, fallbackLimit: 1 } as const

function guardOf(options: object) {
  const clock = new ManualTime(0)
  const guard = createGuard<FakeRequest, Args>(
    { clock, ...('policies' in options ? {} : rule), ...options } as unknown as ThrottleInput<FakeRequest, Args>,
    fakeReader,
  )
  const warnings: WeirError[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error))
  const allowed = async (user: string, requests: number) => {
    let count = 0
    for (let i = 0; i < requests; i++) if ((await guard.check({ user }))?.allowed === true) count++
    return count
  }
  return { guard, clock, warnings, allowed }
}

describe.each([fixedWindow(), slidingWindow(), slidingLog(), tokenBucket()])('with $name', (algorithm) => {
  test('each key has the limit that the function says; 0 rejects all, Infinity none', async () => {
    const { allowed, warnings } = guardOf({ algorithm, coordination: 'local' })
    expect([await allowed('ann', 5), await allowed('bob', 5), await allowed('none', 5), await allowed('all', 50)]).toEqual([2, 3, 0, 50])
    expect(warnings.map(({ code }) => code)).toEqual([])
  })
})

test('a limit that changes holds from the next request on, over what was counted', async () => {
  let limit = 2
  const { allowed } = guardOf({ limit: () => limit })
  expect(await allowed('ann', 5)).toBe(2)
  limit = 4
  expect(await allowed('ann', 5)).toBe(2)
  limit = 1
  expect(await allowed('ann', 5)).toBe(0)
})

test('decisions and fields tell the limit of the key, and the others that of their policies', async () => {
  const { guard } = guardOf({
    policies: [
      { ...rule, limit: byUser },
      { name: 'all', key: 'all', limit: 9, interval: '1h' },
    ],
  })
  const decision = await guard.check({ user: 'bob' })
  expect(decision?.parts.map(({ limit, remaining }) => [limit, remaining])).toEqual([
    [3, 2],
    [9, 8],
  ])
  const fields: Record<string, string> = {}
  guard.writeHeaders(decision as never, fields, (response, name, value) => {
    response[name] = value
  })
  expect(fields).toEqual({ 'RateLimit-Policy': '"user";q=3;w=3600, "all";q=9;w=3600', RateLimit: '"user";r=2;t=3600, "all";r=8;t=3600' })
})

test('a request of a limit of 0 never fits, and is told no time', async () => {
  const { guard } = guardOf({})
  const decision = await guard.check({ user: 'none' })
  const rejection = await guard.reject({ user: 'none' }, decision as never)
  expect(rejection.status).toBe(429)
  expect(rejection.headers['Retry-After']).toBeUndefined()
  expect(rejection.headers['RateLimit-Policy']).toBe('"user";q=0;w=3600')
})

describe('a function that answers later', () => {
  test('is asked once by a burst, and again a second after its answer', async () => {
    const asked: unknown[] = []
    const { guard, clock } = guardOf({
      limit: async (request: FakeRequest) => {
        asked.push(request.user)
        await new Promise((resolve) => setImmediate(resolve))
        return byUser(request)
      },
    })
    const users = ['ann', 'bob', 'ann', 'bob', 'ann', 'bob', 'bob']
    const decisions = await Promise.all(users.map((user) => guard.check({ user })))
    expect(decisions.map((decision) => decision?.allowed)).toEqual([true, true, true, true, false, true, false])
    expect(asked).toEqual(['ann', 'bob'])
    // The limit is known by now, so the guard returns no promise.
    clock.advance(900)
    expect(guard.check({ user: 'ann' })).toMatchObject({ limit: 2 })
    clock.advance(200)
    await guard.check({ user: 'ann' })
    expect(asked).toEqual(['ann', 'bob', 'ann'])
  })

  test('that is late or fails leaves the fallback, with one warning, and is left alone for a second', async () => {
    let asked = 0
    const { guard, warnings, clock } = guardOf({
      limit: () => {
        asked++
        return Promise.reject(new Error('no database'))
      },
    })
    const decisions = await Promise.all([guard.check({ user: 'ann' }), guard.check({ user: 'ann' })])
    expect(decisions.map((decision) => [decision?.allowed, decision?.limit])).toEqual([
      [true, 1],
      [false, 1],
    ])
    await guard.check({ user: 'ann' })
    expect(asked).toBe(1)
    clock.advance(1_100)
    await guard.check({ user: 'ann' })
    expect(asked).toBe(2)
    expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_INVALID_LIMIT'])
    expect(warnings[0]?.message).toContain('no database')
  })

  test('never answers: the fallback holds after callbackTimeout', async () => {
    const { guard, clock, warnings } = guardOf({ limit: () => new Promise(() => {}), callbackTimeout: 40 })
    const waiting = guard.check({ user: 'ann' })
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(50)
    expect(await waiting).toMatchObject({ limit: 1, allowed: true })
    expect(warnings).toHaveLength(1)
  })
})

test.each([undefined, null, '5', Number.NaN, -1, 0.5, {}, () => 5])(
  'an answer of %s leaves the fallback, with one warning',
  async (answer) => {
    const { allowed, warnings } = guardOf({ limit: () => answer, fallbackLimit: 2 })
    expect(await allowed('ann', 4)).toBe(2)
    expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_INVALID_LIMIT'])
  },
)

test('without a request the fallback holds, unless a limit is given', () => {
  const { guard } = guardOf({ fallbackLimit: 3 })
  expect(guard.throttler.check('x').limit).toBe(3)
  expect(guard.throttler.check('x', { limit: 7 }).limit).toBe(7)
  expect(guard.throttler.policies[0]?.limit).toBe(3)
})

test('nodes share the counts of a key, and each compares them with the limit that it was given', async () => {
  const shared = { store: memoryStore(), coordination: 'central', storeTimeout: '5s', clock: undefined }
  const limit = (request: FakeRequest) => Number(request.path?.slice(1))
  const nodes = [guardOf({ ...shared, limit }), guardOf({ ...shared, limit })]
  const allowed = async (node: number, path: string) => (await nodes[node]?.guard.check({ user: 'ann', path }))?.allowed
  const found: unknown[] = []
  for (const [node, path] of [
    [0, '/3'],
    [1, '/3'],
    [0, '/3'],
    [1, '/3'],
    [1, '/5'],
    [0, '/4'],
    [0, '/5'],
    [1, '/5'],
  ] as const) {
    found.push(await allowed(node, path))
  }
  expect(found).toEqual([true, true, true, false, true, false, true, false])
  for (const { guard } of nodes) await guard.throttler.close()
})

describe('options that can not be used are rejected when the throttler is made', () => {
  const make = (options: object) => () => createThrottler({ policies: [{ ...rule, ...options } as never] })
  test.each([
    [{ fallbackLimit: undefined }, 'WEIR_MISSING_OPTION', /"fallbackLimit" is missing/],
    [{ fallbackLimit: 0 }, 'WEIR_INVALID_OPTION', /"fallbackLimit" is 0/],
    [{ limit: 5 }, 'WEIR_INVALID_OPTION', /Remove "fallbackLimit"/],
    [{ limit: 'many', fallbackLimit: undefined }, 'WEIR_INVALID_OPTION', /"limit" is "many".*function of the request/],
    [{ cost: 2 }, 'WEIR_INVALID_OPTION', /"cost"/],
  ])('%j', (options, code, message) => {
    expect(make(options)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
  })
})
