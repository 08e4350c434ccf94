import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Guard } from '../../src/http/guard.ts'
import { PlaceLimits } from '../../src/http/place-limits.ts'
import { paths } from '../../src/http/request/paths.ts'
import { fixedWindow, memoryStore } from '../../src/index.ts'
import { namesAt } from '../../src/throttler/names.ts'
import { createThrottler, type Throttler } from '../../src/throttler/throttler.ts'
import { warnings } from '../support/nodes.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'

type Rules = Parameters<Throttler<string, FakeRequest>['update']>[0]

const allowedOf = (guard: Guard<FakeRequest, []>, count: number, path = '/'): number => {
  let allowed = 0
  for (let i = 0; i < count; i++) if ((guard.check({ ip: '192.0.2.1', path }) as { allowed?: boolean })?.allowed === true) allowed++
  return allowed
}

test.each<[object, string]>([
  [{ match: 'POST /x' }, 'match'],
  [{ match: null }, 'match'],
  [{ key: 5 }, 'key'],
  [{ key: [] }, 'key'],
  [{ key: { header: 'a b' } }, 'key'],
  [{ key: header }, ''],
])('update rejects %j, and requests go on under the rules of before', (bad, option) => {
  const before = [{ name: 'all', key: 'ip', limit: 100, interval: '1m' }] as const
  // The throttler is either passed to the guard or made by it.
  for (const given of [{ throttler: createThrottler<string, FakeRequest>({ policies: before }) }, { policies: before }]) {
    const guard = new Guard<FakeRequest, []>(given as never, fakeReader)
    expect(allowedOf(guard, 10)).toBe(10)
    const update = () =>
      guard.throttler.update([...before, { name: 'bad', key: 'ip', limit: 5, interval: '1m', ...bad }] as unknown as Rules)
    if (option !== '') {
      expect(update).toThrow(
        expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining(`"policies[1].${option}"`) }),
      )
    }
    expect(allowedOf(guard, 200)).toBe(90)
  }
})

function header(): string {
  return 'x'
}

test('whatever a throttler takes for the request side of a rule, a guard can read', () => {
  const heard = warnings()
  const source = fc.oneof(
    fc.constantFrom<unknown>('ip', 'route', 'all', header, null, undefined, 5, {}, []),
    fc.record({ header: fc.oneof(fc.string(), fc.constantFrom('X-Key', 'a b', '')) }),
    fc.anything(),
  )
  const rule = fc.record(
    {
      key: fc.oneof(source, fc.array(source, { maxLength: 3 })),
      match: fc.oneof(
        fc.constantFrom<unknown>(paths('/a'), () => true, '/a', null, { patterns: ['/a'] }, { patterns: 5, index: 5 }),
        fc.anything(),
      ),
      cost: fc.oneof(
        fc.constantFrom<unknown>(1, 2, () => 1, Number.NaN),
        fc.anything(),
      ),
    },
    { requiredKeys: [] },
  )
  // No guard accepts a rule without a key.
  const keyed = ({ key }: { key?: unknown }) => (key === undefined ? { key: 'ip' } : {})
  let taken = 0
  fc.assert(
    fc.property(rule, (given) => {
      let throttler: Throttler<string, FakeRequest>
      try {
        throttler = createThrottler({
          policies: [{ limit: 10, interval: '1m', coordination: 'local', ...given, ...keyed(given) }] as never,
        })
      } catch (error) {
        expect(error).toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringMatching(/^Option "(key|match|cost|header)"/) })
        return
      }
      taken++
      new Guard<FakeRequest, []>({ throttler } as never, fakeReader).check({ ip: '192.0.2.1' })
    }),
    { numRuns: 3_000 },
  )
  expect(taken).toBeGreaterThan(100)
  expect(heard.filter((warning) => /could not be decided/.test(warning.message))).toEqual([])
})

test.each<object>([
  { headers: 'draft-1' },
  { headers: ['legacy', 'legacy-unix'] },
  { ipv6Subnet: 200 },
  { statusCode: 200 },
  { callbackTimeout: 0 },
])('a guard that can not be made of %j leaves its names to others', (own) => {
  const store = memoryStore()
  const policy = { name: 'one', key: 'ip', limit: 10, interval: '1m' } as const
  expect(() => new Guard<FakeRequest, []>({ ...policy, store, ...own } as never, fakeReader)).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }),
  )
  new Guard<FakeRequest, []>({ ...policy, limit: 20, store }, fakeReader)
  expect(namesAt(store).sharing).toBe(false)
})

test('the limits of a place that are rejected change nothing at the others', () => {
  const store = memoryStore()
  createThrottler({ policies: [{ name: 'taken', limit: 1, interval: '1m' }], store })
  const places = new PlaceLimits<FakeRequest, []>(
    { name: 'all', key: 'ip', limit: 10, interval: '1m', coordination: 'background', store },
    fakeReader,
    { place: 'Route', whole: 'the plugin', none: '' },
  )
  const good = places.add({ limit: 5 }, 'good')
  for (const bad of [{ limit: 0 }, { name: 'taken', limit: 5 }, { limit: 5, key: [] }, { limit: 5, algorithm: fixedWindow }]) {
    expect(() => places.add(bad as never, 'bad')).toThrow()
  }
  expect(places.throttler.policies.map(({ name }) => name)).toEqual(['all', 'good'])
  expect(allowedOf(places.guard(good), 20)).toBe(5)
  // The application's own rules leave out the policies of places, and `follow` adds them again.
  places.throttler.update([{ name: 'all', key: 'ip', limit: 3, interval: '1m' }])
  places.follow()
  expect(places.throttler.policies.map(({ name }) => name)).toEqual(['all', 'good'])
  expect(allowedOf(places.general, 20)).toBe(3)
})

test('two places with one rule have one limit, however it is spelled', () => {
  const places = new PlaceLimits<FakeRequest, []>({ key: 'ip', limit: 10, interval: '1m' }, fakeReader, {
    place: 'Route',
    whole: 'the plugin',
    none: '',
  })
  places.add({ name: 'login', limit: 5, interval: '60s', key: ['ip'], match: paths('POST /a/:id', '/b') }, 'one')
  places.add(
    { name: 'login', limit: 5, interval: 60_000, key: 'ip', cost: 1, algorithm: fixedWindow(), match: paths('/B', 'POST /a/:name') },
    'two',
  )
  expect(places.throttler.policies).toHaveLength(2)
  expect(() => places.add({ name: 'login', limit: 6, interval: '60s' }, 'three')).toThrow(
    expect.objectContaining({ code: 'WEIR_DUPLICATE_POLICY' }),
  )
})
