import { expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'

test('a peek tells what a check would say, and counts nothing', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' })
  for (let i = 0; i < 5; i++) expect(throttler.peek('a')).toMatchObject({ allowed: true, remaining: 1, cost: 0 })
  expect(throttler.peek('a', 3)).toMatchObject({ allowed: false, reason: 'limit' })
  expect(offer(throttler, 'a', 5)).toBe(2)
  expect(throttler.peek('a')).toMatchObject({ allowed: false, reason: 'limit', remaining: 0, retryAfter: 60_000 })
  expect(snapshot(throttler).policies[0]).toMatchObject({ admitted: 2, refused: 3 })
})

test.each(['background', 'spans'] as const)('a peek starts no cooldown (%s)', (coordination) => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: 1_000, cooldown: '1m', coordination })
  offer(throttler, 'a', 2)
  expect(throttler.peek('a').allowed).toBe(false)
  expect(snapshot(throttler).blocked).toEqual([])
})

test('a peek into a full table counts as no refusal', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' }, { maxKeys: 1, overflow: 'block' })
  throttler.check('a')
  expect(throttler.peek('b')).toMatchObject({ allowed: false, reason: 'overflow' })
  expect(snapshot(throttler).policies[0]?.refused).toBe(0)
})

test('a peek through several policies', () => {
  const { node } = scene()
  const throttler = node([
    { name: 'a', limit: 5, interval: '1m' },
    { name: 'b', limit: 2, interval: '1m' },
  ])
  offer(throttler, 'x', 1)
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([3, 0])
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([3, 0])
})
