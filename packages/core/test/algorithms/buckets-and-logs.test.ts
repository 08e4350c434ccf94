import { describe, expect, test, vi } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { createGuard } from '../../src/http/guard.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { fakeReader } from '../http/fake-request.ts'
import { ManualTime } from '../http/manual-time.ts'
import { thrownBy } from '../support/nodes.ts'

function one(algorithm: Algorithm, limit = 10, more: object = {}) {
  const clock = new ManualTime(60_000_000)
  const rule = { limit, interval: 1000, algorithm, coordination: 'local' as const, ...more }
  return { clock, rule, throttler: createThrottler({ policies: [rule], clock }) }
}

describe('options', () => {
  test.each<[make: () => unknown, says: string]>([
    [() => tokenBucket({ burst: 0.5 }), '"burst" is 0.5'],
    [() => tokenBucket({ burst: Number.NaN }), '"burst"'],
    [() => tokenBucket({ burst: '5' as never }), '"burst" is "5"'],
    [() => tokenBucket({ burst: null as never }), '"burst" is null'],
    [() => tokenBucket({ warmUp: 0 }), '"warmUp" is 0'],
    [() => tokenBucket({ warmUp: '10' as never }), '"warmUp" is "10"'],
    [() => tokenBucket({ warmUp: { duration: 0 } }), '"warmUp.duration"'],
    [() => tokenBucket({ warmUp: { duration: '1s', coldFactor: 1 } }), '"warmUp.coldFactor" is 1'],
    [() => tokenBucket({ warmUp: { duration: '1s', factor: 3 } as never }), '"warmUp.factor"'],
    [() => tokenBucket({ maxDebt: -1 }), '"maxDebt" is -1. Use a number of at least 0'],
    [() => tokenBucket({ maxDebt: 5, warmUp: '1s' }), 'Remove "maxDebt": it can\'t be combined with "warmUp"'],
    [() => leakyBucket({ burst: -1 }), '"burst" is -1'],
    [() => leakyBucket({ burst: 2, immediate: 3 }), '"immediate" is 3. Use a number from 0 to "burst", 2'],
    [() => leakyBucket({ immediate: -1 }), '"immediate" is -1'],
    [() => fixedWindow({ start: 'now' as never }), '"start" is "now". Use "epoch" or "first-request"'],
  ])('%s', (make, says) => {
    expect(thrownBy(make as () => never).message).toContain(says)
  })

  test.each([tokenBucket({ warmUp: 100 }), slidingLog(), fixedWindow({ start: 'first-request' })])(
    'a pair that there is not is rejected, with what to take instead: $name',
    (algorithm) => {
      const make = (coordination: 'background' | 'periodic' | undefined) =>
        thrownBy(() =>
          createThrottler({
            policies: [{ limit: 1, interval: '1s', algorithm, ...(coordination && { coordination }) }],
            store: memoryStore(),
          }),
        ).message
      expect(make('background')).toMatch(/"background"; .* supports "local"/)
      expect(make('periodic')).toContain(`; ${algorithm.name} supports "local"`)
      expect(make(undefined)).toContain(
        `${algorithm.name} can't sync in the background, the default with a store. Set "coordination" to "local" (`,
      )
    },
  )

  test('a cost may be more than the limit where the burst is', () => {
    expect(one(tokenBucket({ burst: 20 }), 10, { cost: 15 }).throttler.check('a').allowed).toBe(true)
    expect(thrownBy(() => one(tokenBucket({ burst: 4 }), 10, { cost: 5 })).message).toContain('at most the size of tokenBucket(), 4')
  })
})

test('a limit of 0 rejects all, one of Infinity allows all, whatever was counted before', () => {
  for (const algorithm of [
    tokenBucket(),
    tokenBucket({ burst: 2 }),
    tokenBucket({ warmUp: 100 }),
    leakyBucket({ burst: 2 }),
    slidingLog(),
    fixedWindow({ start: 'first-request' }),
  ]) {
    const { throttler } = one(algorithm)
    for (const limit of [10, 0, Number.POSITIVE_INFINITY, 0, 10]) {
      for (let i = 0; i < 3; i++) {
        const decision = throttler.check('key', { limit })
        if (limit !== 10) expect([algorithm.name, limit, decision.allowed]).toEqual([algorithm.name, limit, limit !== 0])
        expect(decision.remaining).toBeGreaterThanOrEqual(0)
        if (limit === 0) expect(decision.retryAfterMs).toBe(Number.POSITIVE_INFINITY)
      }
    }
  }
})

test('another burst holds at once, and the units stay', () => {
  const { throttler, rule } = one(tokenBucket({ burst: 5 }))
  throttler.check('key', 4)
  throttler.update([{ ...rule, algorithm: tokenBucket({ burst: 8 }) }])
  expect(throttler.check('key').remaining).toBe(3)
  throttler.update([{ ...rule, algorithm: tokenBucket({ burst: 2 }) }])
  expect(throttler.check('key')).toMatchObject({ allowed: false, retryAfterMs: 400 })
})

test('a debt is paid before anything passes', () => {
  const { throttler, clock } = one(tokenBucket({ burst: 2 }))
  throttler.charge(throttler.check('key'), 11)
  expect(throttler.check('key')).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 1100 })
  clock.advance(1100)
  expect(throttler.check('key').allowed).toBe(true)
})

test('a snapshot shows what a bucket holds', () => {
  const { throttler } = one(tokenBucket({ burst: 4 }), 100)
  throttler.check('key', 3)
  expect(snapshot(throttler).top).toEqual([{ policy: 'default', key: 'key', used: 3, own: 3, limit: 4 }])
  expect(snapshot(throttler).policies[0]).toMatchObject({ algorithm: 'token-bucket', limit: 100, keys: 1, allowed: 3 })
})

test('a log keeps no more times than the limit, or 64, however small the costs are', () => {
  const { throttler, clock } = one(slidingLog(), 100, { interval: 100_000 })
  let allowed = 0
  for (let i = 0; i < 5000; i++) {
    if (throttler.check('key', 0.05).allowed) allowed += 0.05
    clock.advance(1)
  }
  // Requests that share a time count for longer, but not for less.
  expect(allowed).toBeGreaterThan(99)
  expect(allowed).toBeLessThanOrEqual(100.0001)
  clock.advance(100_000)
  expect(throttler.peek('key').remaining).toBe(100)
})

test('after an update by which requests keep a pace an adapter holds them, but in a dry run', async () => {
  const { throttler, clock, rule } = one(leakyBucket({ burst: 2, immediate: 2 }), 10, { key: 'all' })
  const guard = createGuard(throttler, fakeReader)
  throttler.update([{ ...rule, algorithm: leakyBucket({ burst: 2 }) }])
  expect(guard.check({})).toMatchObject({ allowed: true })
  const held = guard.check({})
  expect(held).toBeInstanceOf(Promise)
  await vi.waitFor(() => expect(throttler.waiting).toBe(1))
  clock.advance(100)
  expect(await held).toMatchObject({ allowed: true, delayMs: 0 })
  throttler.update([{ ...rule, algorithm: leakyBucket({ burst: 2 }), dryRun: true }])
  expect(createGuard(throttler, fakeReader).check({})).toMatchObject({ allowed: true, delayMs: 0 })
})
