import { expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'

test('a dry run lets every request pass, and says which it would have rejected', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m', dryRun: true })
  const decisions = Array.from({ length: 5 }, () => throttler.check('a'))
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true])
  expect(decisions.map(({ dryRun }) => dryRun)).toEqual([false, false, true, true, true])
  expect(decisions[2]).toMatchObject({ reason: 'limit', cost: 0, remaining: 0, retryAfterMs: 0 })
  expect(snapshot(throttler).policies[0]).toMatchObject({ allowed: 2, rejected: 3 })
})

test('beside a policy that rejects, it neither lets the request in nor is charged for it', () => {
  const { node } = scene()
  const throttler = node([
    { name: 'trial', limit: 1, interval: '1m', dryRun: true },
    { name: 'real', limit: 3, interval: '1m' },
  ])
  expect(offer(throttler, 'a', 10)).toBe(3)
  expect(snapshot(throttler).policies.map(({ allowed }) => allowed)).toEqual([1, 3])
})

test('a block by hand, a cooldown and a full table reject nobody either', () => {
  const { node } = scene()
  const throttler = node({ limit: 1, interval: '1m', cooldown: '5m', dryRun: true }, { maxKeys: 2, overflow: 'reject' })
  expect(offer(throttler, 'a', 5)).toBe(5)
  expect(throttler.check('a')).toMatchObject({ allowed: true, reason: 'cooldown', dryRun: true })
  throttler.block('b', '1m')
  expect(throttler.check('b')).toMatchObject({ allowed: true, reason: 'blocked', dryRun: true })
  expect(throttler.check('c')).toMatchObject({ allowed: true, reason: 'overflow', dryRun: true })
})

test('while the store is away', async () => {
  const { world, node, store, close } = scene()
  store.health = 'rejecting'
  const throttler = node({ limit: 1, interval: '1m', failMode: 'closed', dryRun: true })
  throttler.start()
  await world.run(10)
  expect(throttler.check('a')).toMatchObject({ allowed: true, reason: 'storeDown', dryRun: true })
  await close()
})
