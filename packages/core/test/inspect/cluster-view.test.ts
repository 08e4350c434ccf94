import { expect, test } from 'vitest'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, LONGEST_STATUS, parseStatus } from '../../src/inspect/status-text.ts'
import { offer, scene } from '../support/nodes.ts'

test('who asks for the cluster gets all its nodes, with what they say of themselves', async () => {
  const { world, node } = scene()
  const [one, two] = [node({ name: 'user', limit: 100, interval: '1m' }), node({ name: 'user', limit: 100, interval: '1m' })]
  one.start()
  two.start()
  offer(two, 'a', 30)
  await world.run(100)
  expect(cluster(one).map(({ node: id }) => id)).toEqual([one.nodeId])
  for (let i = 0; i < 3; i++) {
    await world.run(1_000)
    cluster(one)
  }
  const [self, other] = cluster(one)
  expect(self).toMatchObject({ node: one.nodeId, self: true, ageMs: 0 })
  expect(other).toMatchObject({ node: two.nodeId, self: false, state: 'synced' })
  expect(other?.policies[0]).toMatchObject({ name: 'user', limit: 100, allowed: 30 })
  expect(other?.top).toEqual([{ policy: 'user', key: 'a', used: 30, own: 30 }])
  expect(other?.ageMs).toBeLessThanOrEqual(2_100)
})

test('nobody tells anything while nobody asks', async () => {
  const { world, node, store } = scene()
  const [one, two] = [node({ limit: 100, interval: '1m' }), node({ limit: 100, interval: '1m' })]
  one.start()
  two.start()
  const told = (): number => store.requests.filter(({ request }) => request.heartbeat?.status !== undefined).length
  await world.run(3_000)
  expect(told()).toBe(0)
  cluster(one)
  await world.run(3_000)
  expect(told()).toBeGreaterThan(2)
  await world.run(30_000)
  const before = told()
  await world.run(5_000)
  expect(told()).toBe(before)
})

test('a node that has left is not there any more', async () => {
  const { world, node, close } = scene()
  const [one, two] = [node({ limit: 100, interval: '1m' }), node({ limit: 100, interval: '1m' })]
  one.start()
  two.start()
  for (let i = 0; i < 4; i++) {
    cluster(one)
    await world.run(1_000)
  }
  expect(cluster(one)).toHaveLength(2)
  await close(two)
  await world.run(1_500)
  expect(cluster(one)).toHaveLength(1)
})

test('a status is bounded, whatever the keys and however many the policies', () => {
  const { node } = scene()
  const policies = Array.from({ length: 200 }, (_, i) => ({ name: `policy ${i}`, limit: 10, interval: '1m' as const }))
  const throttler = node(policies, { alone: true })
  throttler.check('x'.repeat(60_000))
  for (let i = 0; i < 30; i++) throttler.check(`${i}${'"'.repeat(200)}`)
  const text = formatStatus(statusOf(snapshot(throttler), 'host:1', 5))
  expect(text.length).toBeLessThanOrEqual(LONGEST_STATUS)
  expect(parseStatus(text)?.policies.length).toBeGreaterThan(10)
})

test.each(['', '{', 'null', '[]', '{}', '{"node":"a","policies":7}', '{"node":1,"label":"","state":"","policies":[],"top":[]}'])(
  'what is no status is none: %s',
  (text) => {
    expect(parseStatus(text)).toBeUndefined()
  },
)
