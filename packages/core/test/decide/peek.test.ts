import { describe, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'

test('a peek tells what is left now and what a check would say, and counts nothing', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' })
  for (let i = 0; i < 5; i++) expect(throttler.peek('a')).toMatchObject({ allowed: true, remaining: 2, cost: 0 })
  expect(throttler.peek('a', 3)).toMatchObject({ allowed: false, reason: 'limit', remaining: 2 })
  expect(offer(throttler, 'a', 5)).toBe(2)
  expect(throttler.peek('a')).toMatchObject({ allowed: false, reason: 'limit', remaining: 0, retryAfterMs: 60_000 })
  expect(snapshot(throttler).policies[0]).toMatchObject({ allowed: 2, rejected: 3 })
})

const forms: readonly [Algorithm, 'local' | 'background' | 'periodic'][] = [
  [fixedWindow(), 'local'],
  [fixedWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [slidingWindow(), 'local'],
  [slidingWindow(), 'background'],
  [slidingCounter(), 'local'],
  [slidingCounter(), 'periodic'],
]

describe.each(forms)('%o, %s', (algorithm, coordination) => {
  const policy = { limit: 3, interval: '1m', algorithm, coordination } as const

  test('a peek makes no key, also in a full table', () => {
    const throttler = scene().node(policy, { maxKeys: 2 })
    for (let i = 0; i < 200; i++) expect(throttler.peek(`key ${i}`)).toMatchObject({ allowed: true, remaining: 3, limit: 3 })
    expect(snapshot(throttler).policies[0]?.keys).toBe(0)
    throttler.check('a')
    throttler.check('b')
    throttler.peek('c')
    expect(snapshot(throttler).policies[0]).toMatchObject({ keys: 2, allowed: 2 })
  })

  test('a peek of no cost asks only whether the key is blocked', () => {
    const throttler = scene().node(policy)
    expect(throttler.peek('a', 0)).toMatchObject({ allowed: true, remaining: 3 })
    offer(throttler, 'a', 3)
    expect(throttler.peek('a', { cost: 0 })).toMatchObject({ allowed: true, reason: 'ok', remaining: 0 })
    throttler.block('a', '10s')
    expect(throttler.peek('a', 0)).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 10_000 })
  })

  test('a limit holds for one peek alone', () => {
    const throttler = scene().node(policy)
    throttler.check('a')
    expect(throttler.peek('a', { limit: 10 })).toMatchObject({ limit: 10, remaining: 9 })
    expect(throttler.peek('b', { limit: 10 })).toMatchObject({ limit: 10, remaining: 10 })
    expect(throttler.peek('a')).toMatchObject({ limit: 3, remaining: 2 })
    throttler.check('a', { limit: 10 })
    throttler.peek('a')
    expect(offer(throttler, 'a', 5)).toBe(1)
  })
})

test.each(['background', 'periodic'] as const)('a peek starts no cooldown (%s)', (coordination) => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: 1_000, cooldown: '1m', coordination })
  offer(throttler, 'a', 2)
  expect(throttler.peek('a').allowed).toBe(false)
  expect(snapshot(throttler).blocked).toEqual([])
})

test('a peek into a full table counts as no rejection', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' }, { maxKeys: 1, overflow: 'reject' })
  throttler.check('a')
  expect(throttler.peek('b')).toMatchObject({ allowed: false, reason: 'overflow' })
  expect(snapshot(throttler).policies[0]?.rejected).toBe(0)
})

test('a peek into a full table looks at the counter that new keys share', () => {
  const throttler = scene().node({ limit: 3, interval: '1m' }, { maxKeys: 1 })
  throttler.check('a')
  throttler.check('b')
  expect(throttler.peek('c')).toMatchObject({ allowed: true, remaining: 2 })
})

test('a peek through several policies', () => {
  const { node } = scene()
  const throttler = node([
    { name: 'a', limit: 5, interval: '1m' },
    { name: 'b', limit: 2, interval: '1m' },
  ])
  offer(throttler, 'x', 1)
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([4, 1])
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([4, 1])
})

test('a bad cost counts as 1, with one warning', () => {
  const throttler = scene().node({ limit: 3, interval: '1m' })
  const warnings: string[] = []
  throttler.on('warning', ({ error }) => warnings.push(error.code))
  for (const cost of [Number.NaN, -1, Number.POSITIVE_INFINITY]) expect(throttler.peek('a', cost).allowed).toBe(true)
  expect(warnings).toEqual(['WEIR_WARN_INVALID_COST'])
})
