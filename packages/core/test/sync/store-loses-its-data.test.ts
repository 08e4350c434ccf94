import { expect, test, vi } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { type Node, offer, type Scene, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

async function pair(): Promise<Scene & { one: Node; two: Node; policy: Policy }> {
  const here = scene()
  const [one, two] = [0, 1].map(() => here.node({ limit: 1_000, interval: '1m', cooldown: '5m' })) as [Node, Node]
  one.start()
  two.start()
  await here.world.run(1_100)
  return { ...here, one, two, policy: one.policies[0] as Policy }
}

test('the running counts are whole again after the next heartbeat', async () => {
  const { one, two, world, store, policy, close } = await pair()
  offer(one, 'a', 400)
  offer(two, 'a', 300)
  await world.run(10_000)
  expect(store.total(policy, 'a', EPOCH).taken).toBe(700)
  store.hub.lose()
  expect(store.total(policy, 'a', EPOCH).taken).toBe(0)
  await world.run(1_001)
  expect(store.total(policy, 'a', EPOCH).taken).toBe(700)
  let more = 0
  for (let i = 0; i < 60; i++) {
    more += offer(one, 'a', 10)
    await world.run(3)
  }
  expect(more).toBe(300)
  await close()
})

test('nobody allows more in the meantime: what was known stays known', async () => {
  const { one, two, world, store, close } = await pair()
  offer(one, 'a', 500)
  await world.run(10)
  offer(two, 'a', 500)
  await world.run(10_000)
  store.hub.lose()
  expect(offer(one, 'a', 100) + offer(two, 'a', 100)).toBe(0)
  await world.run(2_000)
  expect(offer(one, 'a', 100) + offer(two, 'a', 100)).toBe(0)
  await close()
})

test('blocks are set again, for the time that is left, and reach a node that starts afterwards', async () => {
  const { one, world, store, node, close } = await pair()
  one.block('a', '20s')
  await world.run(5_000)
  store.hub.lose()
  await world.run(2_000)
  const late = node({ limit: 1_000, interval: '1m', cooldown: '5m' })
  late.start()
  await world.run(10)
  const left = late.check('a').retryAfterMs
  expect(left).toBeGreaterThan(12_900)
  expect(left).toBeLessThanOrEqual(13_000)
  await close()
})

test('lost during an outage', async () => {
  const { one, two, world, store, policy, close } = await pair()
  offer(one, 'a', 400)
  offer(two, 'a', 300)
  await world.run(10_000)
  store.health = 'rejecting'
  await world.run(2_000)
  store.hub.lose()
  store.health = 'up'
  await world.run(1_500)
  expect(store.total(policy, 'a', EPOCH).taken).toBe(700)
  await close()
})

test('away again before the counts were sent again', async () => {
  const { one, world, store, policy, close } = await pair()
  for (let key = 0; key < 1_500; key++) offer(one, `key ${key}`, 1, 900)
  await world.run(5_000)
  store.hub.lose()
  // The heartbeat reports the loss, but the syncs after it fail.
  store.roundTrip = 100
  const beats = store.requests.length
  while (!store.requests.slice(beats).some(({ request }) => request.heartbeat !== undefined)) await world.run(1)
  await world.run(60)
  store.health = 'rejecting'
  await world.run(3_000)
  store.health = 'up'
  await world.run(3_000)
  const missing = Array.from({ length: 1_500 }, (_, key) => store.total(policy, `key ${key}`, EPOCH).taken).filter((taken) => taken !== 900)
  expect(missing).toEqual([])
  await close()
})
