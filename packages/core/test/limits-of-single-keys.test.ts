import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../src/algorithms/sliding-window/index.ts'
import { adapterOf } from '../src/throttler/adapter-side.ts'
import type { Throttler } from '../src/throttler/throttler.ts'
import { type Node, scene } from './support/nodes.ts'

/** How many of `count` requests with this limit are allowed. */
function offer(throttler: Throttler, key: string, count: number, limit?: number): number {
  let allowed = 0
  for (let i = 0; i < count; i++) if (throttler.check(key, { limit }).allowed) allowed++
  return allowed
}

const ways = [
  { name: 'a fixed window alone', alone: true, options: { algorithm: fixedWindow() } },
  { name: 'a fixed window with a store', alone: false, options: { algorithm: fixedWindow() } },
  { name: 'a fixed window by spans', alone: false, options: { coordination: 'periodic' } },
  { name: 'a sliding window alone', alone: true, options: { algorithm: slidingWindow() } },
  { name: 'a sliding window with a store', alone: false, options: { algorithm: slidingWindow() } },
  { name: 'a sliding counter alone', alone: true, options: { algorithm: slidingCounter() } },
] as const

describe.each(ways)('a limit for one key, in $name', ({ alone, options }) => {
  const make = (): Node => scene().node({ limit: 10, interval: '1h', ...options }, { alone })

  test('takes the place of the policy’s, for that key alone', () => {
    const node = make()
    expect(offer(node, 'large', 40, 25)).toBe(25)
    expect(offer(node, 'small', 40, 3)).toBe(3)
    expect(offer(node, 'usual', 40)).toBe(10)
  })

  test('is what the decision says', () => {
    const node = make()
    // By spans a rejected key is blocked for the limit that it has exceeded.
    const reason = 'coordination' in options ? 'cooldown' : 'limit'
    expect(node.check('a', { limit: 25, cost: 5 })).toMatchObject({ allowed: true, limit: 25, remaining: 20, cost: 5 })
    expect(node.peek('a', { limit: 25 })).toMatchObject({ limit: 25 })
    expect(node.check('a', { limit: 5 })).toMatchObject({ allowed: false, limit: 5, remaining: 0, reason })
    expect(node.check('a')).toMatchObject({ allowed: true, limit: 10, remaining: 4 })
    expect(node.check('b', { limit: 2, cost: 3 })).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  })

  test('0 rejects all, Infinity allows all', () => {
    const node = make()
    expect(offer(node, 'a', 5, 0)).toBe(0)
    expect(node.check('a', { limit: 0 }).retryAfterMs).toBe(Number.POSITIVE_INFINITY)
    expect(offer(node, 'b', 500, Number.POSITIVE_INFINITY)).toBe(500)
    expect(offer(node, 'b', 5)).toBe(0)
  })

  test.each([Number.NaN, -1, 0.5, '7', null])('%s is no limit: the policy’s holds, with one warning', (limit) => {
    const node = make()
    const warned: unknown[] = []
    node.on('warning', ({ error }) => warned.push(error.code))
    expect(offer(node, 'a', 20, limit as number)).toBe(10)
    expect(warned).toEqual(['WEIR_WARN_INVALID_LIMIT'])
  })
})

test('nodes share the counts of a key with a limit of its own', async () => {
  const { world, node, close } = scene()
  const [one, two] = [node({ limit: 10, interval: '1m' }), node({ limit: 10, interval: '1m' })]
  for (const each of [one, two]) each.start()
  await world.run(1_100)
  let allowed = 0
  for (let i = 0; i < 200; i++) {
    for (const each of [one, two]) if (each.check('large', { limit: 100 }).allowed) allowed++
    await world.run(20)
  }
  expect(allowed).toBeGreaterThanOrEqual(100)
  expect(allowed).toBeLessThanOrEqual(104)
  await close()
})

test('of several policies each has it', () => {
  const node = scene().node(
    [
      { name: 'a', limit: 10, interval: '1h' },
      { name: 'b', limit: 20, interval: '1h' },
    ],
    { alone: true },
  )
  expect(offer(node, 'k', 50, 15)).toBe(15)
  expect(offer(node, 'other', 50)).toBe(10)
  expect(node.check('k', { limit: 16 }).parts.map(({ limit }) => limit)).toEqual([16, 16])
})

test('one that comes through an adapter has the limit of the policy again', () => {
  const node = scene().node({ limit: 10, interval: '1h' }, { alone: true })
  expect(offer(node, 'k', 15, 15)).toBe(15)
  expect(adapterOf(node).decide(['k'], [1], [0], 1)).toMatchObject({ allowed: false, limit: 10 })
})

describe.each(ways)('a limit that an update gives to one key, in $name', ({ alone, options }) => {
  const rule = { name: 'a', limit: 10, interval: '1h', ...options } as const
  const make = (): Node => scene().node(rule, { alone })

  test('holds before the key is known and after, whatever a request says', () => {
    const node = make()
    node.update([rule], [{ policy: 'a', key: 'new', limit: 3 }])
    expect(offer(node, 'new', 20)).toBe(3)
    expect(offer(node, 'new', 20, 50)).toBe(0)
    expect(node.check('other', 4)).toMatchObject({ allowed: true, limit: 10, remaining: 6 })
    expect(offer(node, 'usual', 20)).toBe(10)
  })

  test('changes what is left of a count, and back', () => {
    const node = make()
    expect(node.check('known', 5)).toMatchObject({ allowed: true, limit: 10, remaining: 5 })
    node.update([rule], [{ policy: 'a', key: 'known', limit: 100 }])
    expect(node.peek('known')).toMatchObject({ limit: 100 })
    expect(node.check('known')).toMatchObject({ allowed: true, limit: 100, remaining: 94 })
    node.update([{ ...rule, limit: 20 }])
    expect(node.check('known')).toMatchObject({ limit: 100, remaining: 93 })
    node.update([rule], [])
    expect(node.check('known')).toMatchObject({ allowed: true, limit: 10, remaining: 2 })
    expect(node.check('x')).toMatchObject({ limit: 10, remaining: 9 })
  })

  test('changes nothing where it can not be used', () => {
    const node = make()
    for (const bad of [{ policy: 'b' }, { limit: 0.5 }, { limit: -1 }, { key: 5 as unknown as string }]) {
      expect(() => node.update([{ ...rule, limit: 99 }], [{ policy: 'a', key: 'k', limit: 3, ...bad }])).toThrow()
      expect(node.policies[0]?.limit).toBe(10)
    }
  })
})

test('limits of single keys hold at several policies, with keys of their own', () => {
  const rules = [
    { name: 'a', limit: 10, interval: '1h' },
    { name: 'b', limit: 10, interval: '1h' },
  ] as const
  const node = scene().node(rules, { alone: true })
  node.update(rules, [{ policy: 'b', key: 'k', limit: 3 }])
  expect(offer(node, 'k', 20)).toBe(3)
  expect(offer(node, 'l', 20)).toBe(10)
  expect(adapterOf(node).decide(['k', 'l'], [1, 1])).toMatchObject({ allowed: false })
  expect(adapterOf(node).decide(['k', 'z'], [1, 1])).toMatchObject({ allowed: true })
  expect(adapterOf(node).decide([undefined, 'k'], [1, 1], [1], 1)).toMatchObject({ allowed: false, limit: 3 })
})

test('a limit of 0 for one key is seen by peek before the key is known', () => {
  const rule = { name: 'a', limit: 10, interval: '1h' } as const
  const node = scene().node(rule, { alone: true })
  node.update([rule], [{ policy: 'a', key: 'k', limit: 0 }])
  expect(node.peek('k')).toMatchObject({ allowed: false, limit: 0 })
  expect(node.peek('l')).toMatchObject({ allowed: true, limit: 10 })
})
