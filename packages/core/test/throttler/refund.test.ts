import { describe, expect, test } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, offer, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

test('units come back, at most what the decision took, however often it is asked', () => {
  const { node } = scene()
  const throttler = node({ limit: 10, interval: '1m' })
  offer(throttler, 'a', 1, 3)
  const decision = throttler.check('a', 4)
  throttler.refund(decision, 1)
  expect(throttler.peek('a', 1).remaining).toBe(4)
  throttler.refund(decision)
  throttler.refund(decision)
  throttler.refund(decision, 100)
  expect(throttler.peek('a', 1).remaining).toBe(7)
  expect(decision.cost).toBe(0)
})

test.each([0, -1, Number.NaN, '2', null])('%s refunds nothing', (units) => {
  const { node } = scene()
  const throttler = node({ limit: 10, interval: '1m' })
  const decision = throttler.check('a', 5)
  throttler.refund(decision, units as number)
  expect(throttler.peek('a', 1).remaining).toBe(5)
})

test('a rejected decision has nothing to refund', () => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' })
  offer(throttler, 'a', 2)
  throttler.refund(throttler.check('a'))
  expect(throttler.peek('a').allowed).toBe(false)
})

test('each of several policies gets its own back', () => {
  const { node } = scene()
  const throttler = node([
    { name: 'a', limit: 10, interval: '1m' },
    { name: 'b', limit: 10, interval: '1m' },
  ])
  const decision = adapterOf(throttler).decide(['x', 'x'], [2, 5])
  throttler.refund(decision, 3)
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([10, 8])
  throttler.refund(decision)
  expect(throttler.peek('x').parts.map(({ remaining }) => remaining)).toEqual([10, 10])
})

test('a refund opens a key that was closed', () => {
  const { node } = scene()
  const throttler = node({ limit: 3, interval: '1m' })
  const decisions = [1, 2, 3].map(() => throttler.check('a'))
  expect(throttler.check('a').allowed).toBe(false)
  throttler.refund(decisions[0] as never)
  expect(offer(throttler, 'a', 3)).toBe(1)
})

test('a refund does not end a cooldown', () => {
  const { node } = scene()
  const throttler = node({ limit: 3, interval: 1_000, cooldown: '1m' })
  const decision = throttler.check('a', 3)
  throttler.check('a')
  throttler.refund(decision)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'cooldown' })
})

describe('in the store', () => {
  const setUp = async (): Promise<{ one: Node; two: Node; policy: Policy } & ReturnType<typeof scene>> => {
    const here = scene()
    const [one, two] = [0, 1].map(() => here.node({ limit: 100, interval: 1_000 })) as [Node, Node]
    one.start()
    two.start()
    await here.world.runTo(20)
    return { ...here, one, two, policy: one.policies[0] as Policy }
  }

  test('the total shrinks by what was refunded', async () => {
    const { one, world, store, policy, close } = await setUp()
    const decision = one.check('a', 60)
    await world.run(300)
    expect(store.total(policy, 'a', EPOCH)).toEqual({ taken: 60, given: 0 })
    one.refund(decision, 20)
    await world.run(300)
    expect(store.total(policy, 'a', EPOCH)).toEqual({ taken: 60, given: 20 })
    await close()
    expect(store.total(policy, 'a', EPOCH)).toEqual({ taken: 60, given: 20 })
  })

  test('units of an interval that is over go back to that interval, not to the running one', async () => {
    const { one, world, store, policy, close } = await setUp()
    await world.runTo(990)
    const decision = one.check('a', 15)
    await world.runTo(1_001)
    offer(one, 'a', 1, 50)
    one.refund(decision, 5)
    expect(one.peek('a').remaining).toBe(50)
    await world.runTo(1_900)
    await close()
    expect(store.total(policy, 'a', EPOCH)).toEqual({ taken: 15, given: 5 })
    expect(store.total(policy, 'a', EPOCH + 1_000)).toEqual({ taken: 50, given: 0 })
  })

  test('units of an interval whose counts were sent already give nobody room in the running one', async () => {
    const { one, two, world, close } = await setUp()
    await world.runTo(900)
    const decision = one.check('a', 80)
    await world.runTo(1_001)
    one.refund(decision)
    expect(offer(one, 'a', 60) + offer(two, 'a', 60)).toBeGreaterThanOrEqual(100)
    await world.run(10)
    expect(one.check('a').allowed).toBe(false)
    expect(two.check('a').allowed).toBe(false)
    await close()
  })

  test('a node whose own requests need no exchange hears of the refund with its next one', async () => {
    const { one, two, world, close } = await setUp()
    offer(two, 'a', 20)
    const decision = one.check('a', 80)
    await world.run(50)
    expect(two.check('a').allowed).toBe(false)
    one.refund(decision, 40)
    expect(offer(one, 'a', 10)).toBe(10)
    await world.runTo(1_001)
    expect(two.check('a').allowed).toBe(true)
    await close()
  })

  test('a refund after close does nothing, and does not throw', async () => {
    const { one, close } = await setUp()
    const decision = one.check('a', 10)
    await close()
    expect(() => one.refund(decision)).not.toThrow()
    expect(() => one.charge(decision, 5)).not.toThrow()
  })
})
