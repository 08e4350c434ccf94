import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { type Node, offer, scene } from '../support/nodes.ts'

function rejections(node: Node) {
  return Object.fromEntries(
    snapshot(node).policies.flatMap((policy) => policy.rejections.map((one) => [`${one.reason}/${one.source}`, one.count])),
  )
}

describe.each(['fixed', 'sliding'] as const)('a rejection in a %s window is counted by where the knowledge came from', (window) => {
  test('this node alone', async () => {
    const { world, node } = scene()
    const throttler = node({ limit: 10, interval: '1m', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() })
    await world.run(10)
    offer(throttler, 'a', 13)
    expect(rejections(throttler)).toEqual({ 'limit/local': 3 })
    expect(snapshot(throttler).policies[0]?.rejected).toBe(3)
  })

  test('totals that the store returned', async () => {
    const { world, node, store } = scene()
    store.announces = false
    const [one, two] = [
      node({ limit: 10, interval: '1m', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
      node({ limit: 10, interval: '1m', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
    ]
    one.start()
    two.start()
    await world.run(10)
    offer(two, 'a', 1)
    await world.run(10)
    offer(one, 'a', 9)
    await world.run(10)
    offer(two, 'a', 1)
    await world.run(10)
    offer(two, 'a', 5)
    await world.run(10)
    const before = rejections(two)['limit/global'] ?? 0
    expect(offer(two, 'a', 4)).toBe(0)
    expect(rejections(two)['limit/global']).toBe(before + 4)
  })

  test('totals that the store announced', async () => {
    const { world, node } = scene()
    const [one, two] = [
      node({ limit: 10, interval: '1m', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
      node({ limit: 10, interval: '1m', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
    ]
    one.start()
    two.start()
    await world.run(1_500)
    offer(one, 'a', 12)
    await world.run(10)
    expect(offer(two, 'a', 2)).toBe(0)
    expect(rejections(two)).toEqual({ 'limit/announcement': 2 })
  })
})

test('blocks: by hand here, and told by the store', async () => {
  const { world, node } = scene()
  const [one, two] = [node({ limit: 10, interval: '1m' }), node({ limit: 10, interval: '1m' })]
  one.start()
  two.start()
  await world.run(10)
  one.block('a', '1m')
  await world.run(10)
  offer(one, 'a', 1)
  offer(two, 'a', 2)
  expect(rejections(one)).toEqual({ 'blocked/local': 1 })
  expect(rejections(two)).toEqual({ 'blocked/announcement': 2 })
  expect(snapshot(one).policies[0]?.blocks).toEqual({ exceeded: 0, manual: 1, remote: 0 })
  expect(snapshot(two).policies[0]?.blocks).toEqual({ exceeded: 0, manual: 0, remote: 1 })
})

test('a cooldown that began here', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 2, interval: '1m', cooldown: '1m' })
  await world.run(10)
  offer(throttler, 'a', 5)
  expect(rejections(throttler)).toEqual({ 'cooldown/local': 3 })
})

test('while the store is away', async () => {
  const { world, node, store } = scene()
  const throttler = node({ limit: 2, interval: '1m', failMode: 'closed' })
  throttler.start()
  await world.run(10)
  store.health = 'rejecting'
  await world.run(1_500)
  offer(throttler, 'a', 3)
  expect(rejections(throttler)).toEqual({ 'storeDown/storeDown': 3 })
})

test.each([
  ['reject', { 'overflow/overflow': 3 }],
  ['shared', { 'limit/overflow': 1 }],
] as const)('a full table with overflow: %s', (overflow, expected) => {
  const { node } = scene()
  const throttler = node({ limit: 2, interval: '1m' }, { alone: true, maxKeys: 1, overflow })
  throttler.check('a')
  for (const key of ['b', 'c', 'd']) throttler.check(key)
  expect(rejections(throttler)).toEqual(expected)
  expect(snapshot(throttler).policies[0]?.overflowing).toBe(true)
})

test('a peek is no rejection', () => {
  const { node } = scene()
  const throttler = node({ limit: 1, interval: '1m' }, { alone: true })
  throttler.check('a')
  expect(throttler.peek('a').allowed).toBe(false)
  expect(rejections(throttler)).toEqual({})
})
