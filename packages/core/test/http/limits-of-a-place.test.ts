import { describe, expect, test } from 'vitest'
import { PlaceLimits } from '../../src/http/place-limits.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import {
  concurrency,
  fixedWindow,
  leakyBucket,
  type PolicyOptions,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { thrownBy } from '../support/nodes.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'

const WORDS = { place: 'Route', whole: 'the plugin', none: 'A route without limits has throttle: false.' }

/** The policy that a place has in an application with these options. */
function policyOf(whole: object, place: object) {
  const places = new PlaceLimits<FakeRequest, []>({ key: 'ip', ...whole } as never, fakeReader, WORDS)
  const before = places.throttler.policies.length
  places.add(place as never, 'GET /')
  const [policy] = places.throttler.policies.slice(before)
  return { ...policy, key: adapterOf(places.throttler).rules[before]?.key }
}

/** The algorithms that each coordination supports. */
const ALGORITHMS = {
  local: [fixedWindow(), slidingWindow(), slidingCounter(), slidingLog(), tokenBucket(), leakyBucket()],
  background: [fixedWindow(), slidingWindow(), tokenBucket(), leakyBucket()],
  periodic: [fixedWindow(), slidingCounter()],
  leased: [fixedWindow()],
  central: [fixedWindow(), slidingWindow(), slidingCounter(), slidingLog(), tokenBucket(), leakyBucket()],
} as const

describe.each(Object.entries(ALGORITHMS))('a place in an application with coordination %s', (coordination, algorithms) => {
  const whole = (): object => ({ limit: 300, interval: '1m', coordination, store: memoryStore() })

  test('takes the store, the coordination and the key from it, and has a limit or an interval of its own', () => {
    expect(policyOf(whole(), { limit: 20 })).toMatchObject({ limit: 20, interval: 60_000, coordination, key: 'ip' })
    expect(policyOf(whole(), { interval: '2m' })).toMatchObject({ limit: 300, interval: 120_000, coordination, key: 'ip' })
    expect(policyOf(whole(), { limit: 20, key: 'all' })).toMatchObject({ limit: 20, coordination, key: 'all' })
    expect(policyOf(whole(), {})).toMatchObject({ limit: 300, interval: 60_000, coordination, key: 'ip' })
    expect(policyOf(whole(), { limit: 20, key: undefined, coordination: undefined })).toMatchObject({ limit: 20, coordination, key: 'ip' })
  })

  test.each(algorithms.map((algorithm) => [algorithm.name, algorithm]))('goes by an algorithm of its own: %s', (_name, algorithm) => {
    expect(policyOf(whole(), { algorithm })).toMatchObject({ limit: 300, coordination, key: 'ip' })
  })

  test('has a coordination of its own', () => {
    for (const own of Object.keys(ALGORITHMS)) {
      const waits = coordination === 'central' || coordination === 'leased' ? { storeTimeout: '2s' } : { failMode: 'open' }
      expect(policyOf({ ...whole(), ...waits }, { coordination: own })).toMatchObject({ limit: 300, coordination: own })
    }
  })

  test('has policies of its own', () => {
    const policies: Partial<PolicyOptions>[] = [
      { limit: 5, interval: '1s' },
      { name: 'b', limit: 20, interval: '1m', coordination: coordination as 'local' },
    ]
    expect(policyOf(whole(), { policies })).toMatchObject({ name: 'GET /#0', limit: 5, coordination: 'background' })
  })
})

test.each<[what: string, whole: object, place: object, policy: object]>([
  ['no fallback of a limit that it does not have', { limit: () => 5, fallbackLimit: 5 }, { limit: 20 }, { limit: 20 }],
  ['the fallback for a function of its own', { limit: () => 5, fallbackLimit: 5 }, { limit: () => 6 }, { limit: 5 }],
  ['no spans that its interval is too short for', { limit: 5, spans: 300, coordination: 'local' }, { interval: '1s' }, { spans: 300 }],
  [
    'no cooldown where its algorithm has none',
    { limit: 5, cooldown: '5m', store: memoryStore() },
    { algorithm: leakyBucket({ burst: 2 }) },
    { cooldown: 0 },
  ],
  ['no delay beside a cooldown of its own', { limit: 5, delay: '1s' }, { cooldown: '5m' }, { delay: 0, cooldown: 300_000 }],
  ['a cooldown', { limit: 5, cooldown: '5m' }, { limit: 20 }, { cooldown: 300_000 }],
  ['slots without an interval', { limit: 5, cooldown: '5m', spans: 4 }, { algorithm: concurrency() }, { interval: 0, limit: 5 }],
  [
    'an interval beside slots',
    { limit: 5, interval: undefined, algorithm: concurrency() },
    { interval: '1m' },
    { interval: 60_000, limit: 5 },
  ],
  [
    'a limit in place of plans',
    { plans: { free: 1, pro: 9 }, plan: () => 'free' },
    { limit: 20 },
    { name: 'GET /', limit: 20, interval: 60_000 },
  ],
  ['plans in place of a limit', { limit: 5 }, { plans: { free: 7 }, plan: () => 'free' }, { name: 'GET /:free', limit: 7 }],
  [
    'limits of plans, and who has which from the application',
    { plans: { free: 1 }, plan: () => 'free' },
    { plans: { free: 7 } },
    { limit: 7 },
  ],
  [
    'policies of its own, with the key of the application',
    { limit: 300 },
    { policies: [{ limit: 5, interval: '1h' }] },
    { name: 'GET /#0', key: 'ip' },
  ],
  [
    'policies of its own, with a key of their own',
    { limit: 300 },
    { policies: [{ limit: 5, interval: '1h', key: 'all' }] },
    { key: 'all' },
  ],
  [
    'the plans of the application',
    { plans: { free: 1 }, plan: () => 'free' },
    { interval: '2m' },
    { name: 'GET /:free', interval: 120_000 },
  ],
])('a place has %s', (_what, whole, place, policy) => {
  expect(policyOf({ interval: '1m', ...whole }, place)).toMatchObject(policy)
})

test.each<[place: object, name: string]>([
  [{ limit: 5, interval: '1m' }, 'GET /'],
  [{ policies: [{ limit: 5, interval: '1m' }] }, 'GET /#0'],
])('a place %j needs a key where the application has several policies', (place, name) => {
  const rule = { key: 'ip', limit: 300, interval: '1m' }
  const whole = { policies: [rule, { ...rule, name: 'other', key: 'all' }] }
  const places = new PlaceLimits<FakeRequest, []>(whole as never, fakeReader, WORDS)
  const message = expect.stringContaining(`Policy "${name}" has no "key". Choose what requests are counted by:`)
  expect(thrownBy(() => places.add(place as never, 'GET /'))).toMatchObject({ code: 'WEIR_MISSING_OPTION', message })
  expect(places.throttler.policies).toHaveLength(2)
})

test('slots of a place are counted where the application counts', () => {
  const whole = { limit: 300, interval: '1m', coordination: 'leased', store: memoryStore() }
  expect(policyOf(whole, { limit: 5, algorithm: concurrency() })).toMatchObject({ limit: 5, coordination: 'leased' })
})

test.each<[what: string, place: object, code: string, says: RegExp]>([
  ['an empty list of policies', { policies: [] }, 'WEIR_INVALID_OPTION', /"policies" is \[\].*throttle: false/],
  ['policies that are no list', { policies: {} }, 'WEIR_INVALID_OPTION', /"policies" is \{\}/],
  ['a store of its own', { limit: 5, store: memoryStore() }, 'WEIR_UNKNOWN_OPTION', /"store" can't be set for one route.*the plugin/],
  ['an algorithm that its coordination does not have', { algorithm: slidingWindow() }, 'WEIR_INVALID_OPTION', /"coordination" is "leased"/],
  ['a limit that is none', { limit: -1 }, 'WEIR_INVALID_OPTION', /"limit" is -1/],
  ['no limit for a plan', { plans: {}, plan: () => 'a' }, 'WEIR_INVALID_OPTION', /"plans" is \{\}/],
])('a place is rejected with %s, and the application stays as it was', (_what, place, code, says) => {
  const whole = { key: 'ip', limit: 300, interval: '1m', coordination: 'leased', storeTimeout: '1s', store: memoryStore() }
  const places = new PlaceLimits<FakeRequest, []>(whole as never, fakeReader, WORDS)
  const error = thrownBy(() => places.add(place as never, 'GET /'))
  expect(error).toMatchObject({ code, message: expect.stringMatching(says) })
  expect(places.throttler.policies).toHaveLength(1)
})

test.each<[what: string, place: object, code: string, says: RegExp]>([
  ['an interval that is none', { interval: 'soon' }, 'WEIR_INVALID_OPTION', /"interval" is "soon"/],
  ['an algorithm that its coordination does not have', { algorithm: slidingWindow() }, 'WEIR_INVALID_OPTION', /"coordination" is "leased"/],
])('the error names the fault of the place where the application has a limit by request: %s', (_what, place, code, says) => {
  const whole = { key: 'ip', limit: () => 300, fallbackLimit: 100, interval: '1m', coordination: 'leased', store: memoryStore() }
  const places = new PlaceLimits<FakeRequest, []>(whole as never, fakeReader, WORDS)
  expect(thrownBy(() => places.add(place as never, 'GET /'))).toMatchObject({ code, message: expect.stringMatching(says) })
  expect(places.throttler.policies).toHaveLength(1)
})
