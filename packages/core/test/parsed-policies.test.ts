import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parsePolicies, parsePolicy } from '../src/decide/check-policy.ts'

test('defaults: six spans, no cooldown, fixed window, proof, share', () => {
  expect(parsePolicy({ limit: 100, interval: '1m' })).toEqual({
    name: 'default',
    limit: 100,
    interval: 60_000,
    spans: 6,
    cooldown: 0,
    window: 'fixed',
    buckets: 1,
    reopen: 0.1,
    enforcement: 'proof',
    degraded: 'share',
    strict: false,
    dryRun: false,
    id: 'v1:fixed:proof:60000:default',
  })
})

test('a policy cannot be changed, nor can the list, and later changes of the options do not reach it', () => {
  const options = { name: 'user', limit: 100, interval: 1_000, cost: 5 }
  const policies = parsePolicies([options])
  options.limit = 1
  expect(policies[0]?.limit).toBe(100)
  expect(Object.isFrozen(policies)).toBe(true)
  expect(Object.isFrozen(policies[0])).toBe(true)
  expect(() => {
    ;(policies[0] as { limit: number }).limit = 1
  }).toThrow(TypeError)
})

test('an explicit undefined is an option left out', () => {
  const without = parsePolicy({ limit: 1, interval: 1_000 })
  const options = { limit: 1, interval: 1_000, spans: undefined, name: undefined, cooldown: undefined, cost: undefined, dryRun: undefined }
  expect(parsePolicy(options as never)).toEqual(without)
})

test('what the store tells policies apart by: name, interval, window and enforcement, not limit, spans or cooldown', () => {
  const id = (options: object): string => parsePolicy({ name: 'a', limit: 10, interval: 1_000, ...options }).id
  const base = id({})
  expect(id({ limit: 20, spans: 9, cooldown: '1m', degraded: 'open', dryRun: true, cost: 2 })).toBe(base)
  const others = [
    id({ name: 'b' }),
    id({ interval: 1_001 }),
    id({ window: 'sliding' }),
    id({ window: 'sliding', buckets: 31 }),
    id({ enforcement: 'published' }),
    id({ window: 'sliding', enforcement: 'published' }),
  ]
  expect(new Set([base, ...others]).size).toBe(others.length + 1)
})

test('no two different rules share an id, whatever their names', () => {
  const name = fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(':', '1', '0', 'v', 'f', 'a') })
  const rule = fc.record({
    name,
    interval: fc.constantFrom(1_000, 100, 10_000),
    window: fc.constantFrom('fixed' as const, 'sliding' as const),
  })
  fc.assert(
    fc.property(rule, rule, (a, b) => {
      const same = a.name === b.name && a.interval === b.interval && a.window === b.window
      const buckets = (window: string) => (window === 'sliding' ? { buckets: 6 } : {})
      const idA = parsePolicy({ limit: 1, ...a, ...buckets(a.window) }).id
      const idB = parsePolicy({ limit: 1, ...b, ...buckets(b.window) }).id
      expect(idA === idB).toBe(same)
    }),
  )
})

test('a cost equal to the limit, and a cost function, are fine', () => {
  expect(() => parsePolicy({ limit: 5, interval: 1_000, cost: 5 })).not.toThrow()
  expect(() => parsePolicy({ limit: 5, interval: 1_000, cost: () => 500 })).not.toThrow()
})
