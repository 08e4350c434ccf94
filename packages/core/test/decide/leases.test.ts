import { expect, test } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const strict = { name: 'strict', limit: 3, interval: 1_000, strict: true } as const
const other = { name: 'other', limit: 1, interval: '1h' } as const

/** A node that knows its store, 10 ms before an interval ends, and whose requests wait for it across that end. */
async function beforeTheEnd(policies: readonly (typeof strict | typeof other)[]) {
  const { world, node, store, close } = scene()
  const throttler = node(policies)
  throttler.start()
  await world.runTo(1_500)
  // So little is left that the next request has to ask.
  throttler.decide(['a'], [2])
  await world.runTo(1_600)
  store.roundTrip = 40
  await world.runTo(1_990)
  return { world, store, throttler, close }
}

test('what the store granted before the end of an interval is not refunded to the next one', async () => {
  const { world, throttler, close } = await beforeTheEnd([strict, other])
  const waiting = throttler.checkAsync('a')
  await world.runTo(2_005)
  // Meanwhile the other policy runs full, and the new interval takes units of its own.
  throttler.decide([undefined, 'a'], [1, 1])
  throttler.decide(['a', undefined], [2, 1])
  await world.runTo(2_050)
  const decision = await waiting
  expect(decision).toMatchObject({ allowed: false, policy: { name: 'other' } })
  expect(throttler.peek('a').parts.find(({ policy }) => policy?.name === 'strict')?.remaining).toBe(1)
  await close()
})

test('a refund goes to the interval that the store granted the units in', async () => {
  const { world, store, throttler, close } = await beforeTheEnd([strict])
  const waiting = throttler.checkAsync('a')
  await world.runTo(2_005)
  expect(offer(throttler, 'a', 2)).toBe(2)
  await world.runTo(2_050)
  const decision = await waiting
  expect(decision.allowed).toBe(true)
  expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH + 1_999)).toMatchObject({ taken: 3, given: 0 })
  throttler.refund(decision)
  expect(throttler.peek('a')).toMatchObject({ allowed: true, remaining: 1 })
  expect(offer(throttler, 'a', 2)).toBe(1)
  expect(snapshot(throttler).policies[0]?.admitted).toBe(6)
  await close()
})

test('rules may be swapped while a request waits', async () => {
  const { world, throttler, close } = await beforeTheEnd([strict, other])
  const waiting = throttler.checkAsync('a')
  await world.run(5)
  throttler.update([{ ...other, name: 'new' }, other, strict])
  await world.run(60)
  const decision = await waiting
  expect(decision.parts.map(({ policy, cost }) => [policy?.name, cost])).toEqual([
    ['other', 1],
    ['strict', 1],
  ])
  await close()
})

test('rules that ask may be dropped while a request waits for them', async () => {
  const { world, throttler, close } = await beforeTheEnd([strict, other])
  const waiting = throttler.checkAsync('a')
  await world.run(5)
  throttler.update([other])
  await world.run(100)
  expect((await waiting).parts.find(({ policy }) => policy?.name === 'other')).toMatchObject({ allowed: true, cost: 1 })
  await close()
})

test('without an answer within 50 ms the request is decided by what is known', async () => {
  const { world, store, throttler, close } = await beforeTheEnd([strict])
  store.roundTrip = 200
  const waiting = throttler.checkAsync('a')
  let decided = false
  void waiting.then(() => {
    decided = true
  })
  await world.run(45)
  expect(decided).toBe(false)
  await world.run(10)
  expect((await waiting).allowed).toBe(true)
  // What the store granted too late is refunded, so that it counts once.
  await world.run(1_200)
  const policy = throttler.policies[0] as Policy
  const { taken, given } = store.total(policy, 'a', EPOCH + 1_999)
  expect(taken - given).toBe(3)
  await close()
})
