import { describe, expect, test } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const levels = [
  { name: 'global', key: 'all', limit: 10, interval: '1m' },
  { name: 'user', limit: 3, interval: '1m' },
] as const

test('a request rejected by one level costs nothing at the others', async () => {
  const { node, store, close } = scene()
  const throttler = node(levels)
  expect(offer(throttler, 'ann', 100)).toBe(3)
  expect(offer(throttler, 'bob', 100)).toBe(3)
  expect(throttler.peek('cid').parts.map(({ remaining }) => remaining)).toEqual([4, 3])
  await close()
  const [global, user] = throttler.policies as [Policy, Policy]
  expect(store.total(global, 'all', EPOCH).taken).toBe(6)
  expect(store.total(user, 'ann', EPOCH).taken).toBe(3)
})

test('the level above rejects when its own limit is reached, and the level below is not charged', () => {
  const { node } = scene()
  const throttler = node(levels)
  for (const key of ['a', 'b', 'c', 'd', 'e']) offer(throttler, key, 3)
  expect(snapshot(throttler).policies.map(({ allowed }) => allowed)).toEqual([10, 10])
  const rejected = throttler.check('f')
  expect(rejected).toMatchObject({ allowed: false, reason: 'limit', key: 'all', limit: 10, cost: 0 })
  expect(rejected.policy?.name).toBe('global')
  expect(rejected.parts.map(({ allowed, cost }) => [allowed, cost])).toEqual([
    [false, 0],
    [true, 0],
  ])
  expect(throttler.peek('f').parts[1]?.remaining).toBe(3)
})

test('a level with the key "all" counts all keys together, also as the only level', () => {
  const { node } = scene()
  const throttler = node({ limit: 4, interval: '1m', key: 'all' })
  expect(offer(throttler, 'a', 3)).toBe(3)
  expect(offer(throttler, 'b', 3)).toBe(1)
  expect(throttler.check('c')).toMatchObject({ allowed: false, key: 'all' })
})

describe('the decision that speaks for the request', () => {
  test('is, when allowed, the one with the smallest part of its limit left', () => {
    const { node } = scene()
    const throttler = node([
      { name: 'wide', limit: 100, interval: '1m' },
      { name: 'narrow', limit: 4, interval: '1m' },
    ])
    const decision = throttler.check('a')
    expect(decision).toMatchObject({ allowed: true, limit: 4, remaining: 3, cost: 1 })
    expect(decision.policy?.name).toBe('narrow')
    expect(decision.parts.map(({ policy, remaining }) => [policy?.name, remaining])).toEqual([
      ['wide', 99],
      ['narrow', 3],
    ])
  })

  test('is, when rejected, the one that rejected for longest', () => {
    const { node } = scene()
    const throttler = node([
      { name: 'second', limit: 1, interval: 1_000 },
      { name: 'minute', limit: 1, interval: '1m' },
      { name: 'never', limit: 1_000, interval: 1_000 },
    ])
    throttler.check('a')
    const decision = throttler.check('a')
    expect(decision).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    expect(decision.policy?.name).toBe('minute')
    expect(decision.parts.map(({ allowed }) => allowed)).toEqual([false, false, true])
  })
})

describe('keys and costs of each policy of its own (decide)', () => {
  test('a policy without a key does not apply', () => {
    const { node } = scene()
    const throttler = node(levels)
    const decision = adapterOf(throttler).decide([undefined, 'ann'], [1, 2])
    expect(decision.parts).toHaveLength(1)
    expect(decision).toMatchObject({ allowed: true, key: 'ann', cost: 2, remaining: 1 })
    expect(throttler.peek('ann').parts.map(({ remaining }) => remaining)).toEqual([10, 1])
  })

  test('when none applies the request passes uncounted', () => {
    const { node } = scene()
    const throttler = node(levels)
    const decision = adapterOf(throttler).decide([undefined, undefined], [1, 1])
    expect(decision).toMatchObject({ allowed: true, reason: 'none', policy: undefined, cost: 0 })
    expect(decision.limit).toBe(Number.POSITIVE_INFINITY)
    expect(decision.parts).toEqual([])
    expect(snapshot(throttler).policies.map(({ allowed }) => allowed)).toEqual([0, 0])
  })
})

test('a listener may ask for decisions while one is being made', () => {
  const { node } = scene()
  const throttler = node([
    { name: 'narrow', limit: 1, interval: '1m', cooldown: '1m', dryRun: true },
    { name: 'wide', limit: 100, interval: '1m' },
  ])
  throttler.on('blocked', () => {
    adapterOf(throttler).decide(['other', 'other'], [50, 50])
  })
  throttler.check('a')
  const decision = throttler.check('a')
  expect(decision.parts.map(({ key, cost }) => [key, cost])).toEqual([
    ['a', 0],
    ['a', 1],
  ])
  expect(throttler.peek('a').parts[1]?.remaining).toBe(98)
})
