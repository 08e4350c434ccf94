import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

const modes = [
  { coordination: 'local', alone: true },
  { coordination: 'local', alone: false },
  { coordination: 'background', alone: false },
  { coordination: 'periodic', alone: false },
] as const

describe.each(modes)('$coordination, alone: $alone', ({ coordination, alone }) => {
  test('the limit and no more is allowed in each interval', async () => {
    const { world, node, close } = scene()
    const throttler = node({ limit: 7, interval: 1_000, coordination }, { alone })
    for (let interval = 0; interval < 4; interval++) {
      await world.runTo(interval * 1_000 + 100)
      let allowed = 0
      for (let i = 0; i < 20; i++) {
        await world.run(40)
        allowed += offer(throttler, 'a', 1)
      }
      expect(allowed).toBe(7)
    }
    await close()
  })

  test('a limit of one', () => {
    const { node } = scene()
    expect(offer(node({ limit: 1, interval: '1m', coordination }, { alone }), 'a', 5)).toBe(1)
  })

  test('keys do not share', () => {
    const { node } = scene()
    const throttler = node({ limit: 3, interval: '1m', coordination }, { alone })
    expect(offer(throttler, 'a', 5)).toBe(3)
    expect(offer(throttler, 'b', 5)).toBe(3)
  })
})

test('random traffic of one node is decided as an exact counter would', async () => {
  const arrival = fc.record({ wait: fc.nat({ max: 90 }), key: fc.constantFrom('a', 'b'), cost: fc.integer({ min: 1, max: 4 }) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(arrival, { minLength: 20, maxLength: 80 }),
      fc.integer({ min: 4, max: 12 }),
      fc.constantFrom(100, 250, 333.3),
      fc.boolean(),
      async (arrivals, limit, interval, alone) => {
        const { world, node, close } = scene()
        const throttler = node({ limit, interval }, { alone })
        const used = new Map<string, number>()
        for (const { wait, key, cost } of arrivals) {
          await world.run(wait)
          const id = `${key} ${Math.floor(adapterOf(throttler).clock.now() / interval)}`
          const before = used.get(id) ?? 0
          const decision = throttler.check(key, cost)
          expect(decision.allowed).toBe(before + cost <= limit)
          if (decision.allowed) used.set(id, before + cost)
          expect(decision.remaining).toBe(limit - (used.get(id) ?? 0))
        }
        await close()
      },
    ),
    { numRuns: 60 },
  )
})

test('a decision tells limit, remaining and the time until units come back', async () => {
  const { world, node } = scene()
  const throttler = node({ name: 'user', limit: 2, interval: 1_000 }, { alone: true })
  await world.runTo(400)
  const first = throttler.check('a')
  expect(first).toMatchObject({
    allowed: true,
    reason: 'ok',
    key: 'a',
    limit: 2,
    remaining: 1,
    resetAfterMs: 600,
    retryAfterMs: 0,
    cost: 1,
  })
  expect(first.policy).toBe(throttler.policies[0])
  throttler.check('a')
  await world.run(0.5)
  const rejected = throttler.check('a')
  expect(rejected).toMatchObject({
    allowed: false,
    reason: 'limit',
    remaining: 0,
    resetAfterMs: 600,
    retryAfterMs: 600,
    cost: 0,
    dryRun: false,
  })
})
