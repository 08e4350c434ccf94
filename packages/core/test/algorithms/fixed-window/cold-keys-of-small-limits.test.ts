import { expect, test } from 'vitest'
import type { Policy, PolicyOptions } from '../../../src/decide/policy.ts'
import { type Node, offer, scene } from '../../support/nodes.ts'
import { EPOCH } from '../../support/world.ts'

/** With six processes, each unit of a key would be due immediately. */
const small = { name: 'small', limit: 20, interval: '1m' } as const

/** Six connected processes, some time after the end of a span and a sync. */
async function sixNodes(policies: PolicyOptions<never> | readonly PolicyOptions<never>[] = small) {
  const { world, node, store, close } = scene()
  const nodes = Array.from({ length: 6 }, () => node(policies))
  for (const one of nodes) one.start()
  await world.runTo(12_005)
  const at = world.time
  const sent = (one: Node): number[] =>
    store.requests
      .filter((request) => request.node === one.nodeId && request.at >= at)
      .flatMap((request) => request.request.entries.map(() => request.at - at))
  const total = (key: string, time: number = world.time): number =>
    store.total((nodes[0] as Node).policies[0] as Policy, key, EPOCH + time).taken
  return { world, store, nodes: nodes as [Node, Node, Node, Node, Node, Node], sent, total, close }
}

test('a unit of a key that is cold is held back until the span ends', async () => {
  const { world, nodes, sent, total, close } = await sixNodes()
  const [one] = nodes
  one.check('a')
  await world.runTo(19_999)
  expect(sent(one)).toEqual([])
  await world.runTo(21_001)
  expect(total('a')).toBe(1)
  await world.runTo(59_000)
  expect(sent(one)).toHaveLength(1)
  await close()
})

test('nobody needs it when the interval is over', async () => {
  const { world, nodes, sent, close } = await sixNodes()
  const [one] = nodes
  await world.runTo(52_000)
  one.check('a')
  one.check('b')
  await world.runTo(61_500)
  one.check('b')
  await world.runTo(69_900)
  expect(sent(one)).toEqual([])
  await close()
})

test('more than one unit is told even then', async () => {
  const { world, nodes, total, close } = await sixNodes({ ...small, limit: 60 })
  const [one] = nodes
  await world.runTo(52_000)
  for (let i = 0; i < 5; i++) {
    one.check('a')
    await world.run(10)
  }
  expect(total('a')).toBe(3)
  await world.runTo(62_000)
  expect(total('a', 59_000)).toBe(5)
  await close()
})

test('the second one is sent at once, and the first with it', async () => {
  const { world, nodes, sent, total, close } = await sixNodes()
  const [one] = nodes
  one.check('a')
  await world.run(100)
  one.check('a')
  await world.run(1)
  expect(sent(one)).toEqual([100])
  expect(total('a')).toBe(2)
  // One more unit may stay unsent again.
  one.check('a')
  await world.run(300)
  expect(sent(one)).toEqual([100])
  one.check('a')
  await world.run(1)
  expect(total('a')).toBe(4)
  await close()
})

test('parts of a unit are held back up to a whole one', async () => {
  const { world, nodes, sent, total, close } = await sixNodes()
  const [one] = nodes
  offer(one, 'a', 2, 0.5)
  await world.run(1)
  expect(sent(one)).toEqual([])
  one.check('a', 0.25)
  await world.run(1)
  expect(total('a')).toBe(1.25)
  await close()
})

test('more than a unit at once is not', async () => {
  const { world, nodes, sent, close } = await sixNodes()
  const [one] = nodes
  one.check('a', 2)
  await world.run(1)
  expect(sent(one)).toEqual([0])
  await close()
})

test('when the key becomes hot all nodes send what they held back, and from then on each unit at once', async () => {
  const { world, nodes, sent, total, close } = await sixNodes()
  const [one, two, ...others] = nodes
  for (const other of [two, ...others]) other.check('a')
  await world.run(100)
  expect(total('a')).toBe(0)
  // The key is announced at a quarter of the limit.
  offer(one, 'a', 5)
  await world.run(2)
  expect(total('a')).toBe(10)
  for (const other of [two, ...others]) expect(sent(other)).toEqual([100])
  two.check('a')
  await world.run(3)
  expect(total('a')).toBe(11)
  await close()
})

test('however the requests are spread, no more are allowed than the limit', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const { world, nodes, close } = await sixNodes()
    let allowed = 0
    for (let i = 0; i < 60; i++) {
      allowed += offer(nodes[(i * (seed + 1) + (i >> 2)) % 6] as Node, 'a', 1)
      await world.run(3)
    }
    expect(allowed).toBe(20)
    await close()
  }
})

test('nothing is held back where all nodes together might fill what is left when the key becomes hot', async () => {
  const { world, nodes, sent, close } = await sixNodes({ ...small, limit: 7 })
  const [one] = nodes
  one.check('a')
  await world.run(1)
  expect(sent(one)).toEqual([0])
  await close()
})

test('a node that is closed sends it', async () => {
  const { world, nodes, total, close } = await sixNodes()
  const [one] = nodes
  one.check('a')
  await close(one)
  expect(total('a')).toBe(1)
  await world.run(10)
  await close()
})

test('after an outage all that was held back is told', async () => {
  const { world, store, nodes, total, close } = await sixNodes()
  const [one] = nodes
  one.check('a')
  one.check('b')
  store.health = 'rejecting'
  await world.run(3_000)
  // This process's share is a sixth of the limit: three units.
  expect(offer(one, 'a', 9)).toBe(2)
  store.health = 'up'
  await world.run(1_000)
  expect([total('a'), total('b')]).toEqual([3, 1])
  await close()
})
