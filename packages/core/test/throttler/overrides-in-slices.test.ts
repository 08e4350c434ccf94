import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Limiter } from '../../src/decide/limiter.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

/** More keys than are visited in one turn of the event loop. */
const KEYS = 12_000
/** The key that is visited last. */
const LAST = `key ${KEYS - 1}`

const ways = [
  { name: 'a fixed window alone', alone: true, options: {} },
  { name: 'a token bucket alone', alone: true, options: { algorithm: tokenBucket({ burst: 10 }) } },
  { name: 'a fixed window with a store', alone: false, options: {} },
  { name: 'a sliding window with a store', alone: false, options: { algorithm: slidingWindow() } },
  { name: 'a token bucket with a store', alone: false, options: { algorithm: tokenBucket() } },
] as const

describe.each(ways)('limits that an update gives to many keys, in $name', ({ alone, options }) => {
  const rule = (limit = 10) => ({ name: 'a', limit, interval: '1h', ...options }) as const
  const made = () => {
    const here = scene()
    const node = here.node(rule(), { alone })
    for (let i = 0; i < KEYS; i++) node.check(`key ${i}`)
    const give = (limit: number | undefined, whole = 10) =>
      node.update(
        [rule(whole)],
        limit === undefined ? [] : Array.from({ length: KEYS }, (_, i) => ({ policy: 'a', key: `key ${i}`, limit })),
      )
    return { ...here, node, give }
  }

  test('are given in slices, and hold at once', async () => {
    const { node, give, world, close } = made()
    const meter = adapterOf(node).inspected.limiters[0]?.meter as Limiter['meter']
    const recheck = vi.spyOn(meter, 'recheck')
    give(5_000)
    expect(recheck.mock.calls.length).toBeLessThan(6_000)
    expect(node.check(LAST)).toMatchObject({ allowed: true, limit: 5_000 })
    await world.run(50)
    expect(recheck.mock.calls.length).toBeGreaterThan(KEYS - 100)
    expect(node.check(LAST)).toMatchObject({ allowed: true, limit: 5_000 })
    recheck.mockClear()
    give(5_000)
    await world.run(50)
    // An unchanged limit costs only a comparison.
    expect(recheck.mock.calls.length).toBeLessThan(10)
    give(0)
    expect(node.check(LAST)).toMatchObject({ allowed: false, limit: 0 })
    // The next change comes while keys are still visited for the last one.
    give(undefined)
    expect(node.check(LAST)).toMatchObject({ allowed: true, limit: 10 })
    await world.run(50)
    expect(node.check(LAST)).toMatchObject({ allowed: true, limit: 10 })
    expect(adapterOf(node).inspected.limiters[0]?.limited).toBe(false)
    // Requests take the shortest path again.
    expect((adapterOf(node).inspected as unknown as { path: { single: unknown } }).path.single).toBe(adapterOf(node).inspected.limiters[0])
    await close()
  })

  test('hold where they equal the limit of a policy that changes', async () => {
    const { node, give, world, close } = made()
    give(10)
    await world.run(50)
    node.update([rule(7)])
    expect([node.peek(LAST).limit, node.peek('new').limit]).toEqual([10, 7])
    give(undefined, 7)
    expect(node.peek(LAST).limit).toBe(7)
    await close()
  })
})

test('at any moment of any changes, an override goes before the limit of a request, and that before the policy’s', async () => {
  const key = fc.nat(KEYS + 2).map((n) => `key ${n}`)
  const change = fc.record({
    from: fc.nat(KEYS),
    many: fc.constantFrom(0, 1, 100, KEYS),
    limit: fc.constantFrom(10, 20, 30),
    whole: fc.constantFrom(10, 20),
  })
  const step = fc.oneof(
    change,
    fc.record({ key, given: fc.option(fc.constantFrom(10, 20, 40), { nil: undefined }) }),
    fc.record({ run: fc.nat(3) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const here = scene()
      const rule = (limit: number) => ({ name: 'a', limit, interval: '1h' }) as const
      const node = here.node(rule(10), { alone: true })
      for (let i = 0; i < KEYS; i++) node.check(`key ${i}`)
      let whole = 10
      let overrides = new Map<string, number>()
      for (const step of steps) {
        if ('many' in step) {
          whole = step.whole
          overrides = new Map(Array.from({ length: step.many }, (_, i) => [`key ${(step.from + i) % KEYS}`, step.limit]))
          node.update(
            [rule(whole)],
            [...overrides].map(([key, limit]) => ({ policy: 'a', key, limit })),
          )
        } else if ('run' in step) await here.world.run(step.run)
        else expect(node.check(step.key, { limit: step.given }).limit).toBe(overrides.get(step.key) ?? step.given ?? whole)
      }
      await here.close()
    }),
    { numRuns: 25 },
  )
})
