import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FIXED_WINDOW } from '../../src/algorithms/fixed-window/epoch.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { parsePolicies, parsePolicy } from '../../src/decide/check-policy.ts'

test('defaults: six spans, no cooldown, fixed window, in the background, share', () => {
  expect(parsePolicy({ limit: 100, interval: '1m' }, true)).toEqual({
    name: 'default',
    limit: 100,
    interval: 60_000,
    maxDuration: 0,
    spans: 6,
    cooldown: 0,
    algorithm: FIXED_WINDOW,
    coordination: 'background',
    cooldownGrowth: undefined,
    failMode: 'share',
    storeTimeout: 0,
    delay: 0,
    dryRun: false,
    candidate: false,
    id: 'v1:fixed-window:background:60000:default',
  })
})

test('a policy cannot be changed, nor can the list, and later changes of the options do not reach it', () => {
  const options = { name: 'user', limit: 100, interval: 1_000, cost: 5 }
  const policies = parsePolicies([options], true)
  options.limit = 1
  expect(policies[0]?.limit).toBe(100)
  expect(Object.isFrozen(policies)).toBe(true)
  expect(Object.isFrozen(policies[0])).toBe(true)
  expect(() => {
    ;(policies[0] as { limit: number }).limit = 1
  }).toThrow(TypeError)
})

test('an explicit undefined is an option left out', () => {
  const without = parsePolicy({ limit: 1, interval: 1_000 }, true)
  const options = { limit: 1, interval: 1_000, spans: undefined, name: undefined, cooldown: undefined, cost: undefined, dryRun: undefined }
  expect(parsePolicy(options as never, true)).toEqual(without)
})

test('what the store tells policies apart by: name, interval, algorithm and coordination, not limit, spans or cooldown', () => {
  const id = (options: object): string => parsePolicy({ name: 'a', limit: 10, interval: 1_000, ...options }, true).id
  const base = id({})
  expect(id({ limit: 20, spans: 9, cooldown: '1m', failMode: 'open', dryRun: true, cost: 2 })).toBe(base)
  const others = [
    id({ name: 'b' }),
    id({ interval: 1_001 }),
    id({ algorithm: slidingWindow() }),
    id({ algorithm: slidingWindow({ subWindows: 31 }) }),
    id({ coordination: 'periodic' }),
    id({ algorithm: slidingCounter(), coordination: 'periodic' }),
  ]
  expect(new Set([base, ...others]).size).toBe(others.length + 1)
})

test('no two different rules share an id, whatever their names', () => {
  const name = fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(':', '1', '0', 'v', 'f', 'a') })
  const rule = fc.record({
    name,
    interval: fc.constantFrom(1_000, 100, 10_000),
    algorithm: fc.constantFrom(fixedWindow(), slidingWindow({ subWindows: 6 })),
  })
  fc.assert(
    fc.property(rule, rule, (a, b) => {
      const same = a.name === b.name && a.interval === b.interval && a.algorithm === b.algorithm
      const idA = parsePolicy({ limit: 1, ...a }, true).id
      const idB = parsePolicy({ limit: 1, ...b }, true).id
      expect(idA === idB).toBe(same)
    }),
  )
})

test('a cost equal to the limit, and a cost function, are fine', () => {
  expect(() => parsePolicy({ limit: 5, interval: 1_000, cost: 5 }, true)).not.toThrow()
  expect(() => parsePolicy({ limit: 5, interval: 1_000, cost: () => 500 }, true)).not.toThrow()
})
