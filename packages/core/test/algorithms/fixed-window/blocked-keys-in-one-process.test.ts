import { expect, test } from 'vitest'
import { scene } from '../../support/nodes.ts'

const HOUR = 3_600_000

async function alone() {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: HOUR, coordination: 'local' }, { alone: true })
  await world.runTo(1_000)
  return { world, throttler }
}

test('a charge does not open a blocked key, and counts once it is open', async () => {
  const { world, throttler } = await alone()
  const decision = throttler.check('a')
  throttler.block('a', 5_000)
  throttler.charge(decision, 2)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'blocked', remaining: 0 })
  world.stall(5_001)
  expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 6 })
  expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 5 })
})

test('a refund does not open a blocked key', async () => {
  const { throttler } = await alone()
  const decision = throttler.check('a')
  throttler.block('a', 5_000)
  throttler.refund(decision)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'blocked', remaining: 0 })
  throttler.unblock('a')
  expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 9 })
})

test('a key stays blocked when the next interval begins, and is open again when it is unblocked', async () => {
  const { world, throttler } = await alone()
  throttler.check('a', 10)
  throttler.block('a', 2 * HOUR)
  world.stall(HOUR)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'blocked', remaining: 0 })
  throttler.unblock('a')
  expect(throttler.check('a', 10)).toMatchObject({ allowed: true, remaining: 0 })
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'limit' })
})

test('a full key that is blocked and unblocked is still full', async () => {
  const { throttler } = await alone()
  throttler.check('a', 10)
  throttler.block('a', 5_000)
  expect(throttler.check('a').reason).toBe('blocked')
  throttler.unblock('a')
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'limit', remaining: 0 })
})
