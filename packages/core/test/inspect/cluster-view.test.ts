import { expect, test } from 'vitest'
import { Hub } from '../../src/hub/index.ts'
import { createThrottler, memoryStore, systemClock } from '../../src/index.ts'
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
  expect(other?.top).toEqual([{ policy: 'user', key: 'a', used: 30, own: 30, limit: 100 }])
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

test.each([{ ageMs: 1e300 }, { ageMs: -1 }])('a status with an age that is none is no status: %j', (age) => {
  const throttler = scene().node({ name: 'user', limit: 100, interval: '1m' })
  const status = { ...statusOf(snapshot(throttler), 'host:1', 5) }
  const event = { name: 'nodes', ageMs: 5, count: 1 } as const
  expect(parseStatus(formatStatus({ ...status, events: [event] }))?.events).toEqual([event])
  expect(parseStatus(formatStatus({ ...status, events: [{ ...event, ...age }] }))).toBeUndefined()
})

test('the newest events of each process are in its status, bounded, and record no listener', async () => {
  const { world, node, store } = scene()
  const [one, two] = [node({ name: 'user', limit: 100, interval: '1m' }), node({ name: 'user', limit: 100, interval: '1m' })]
  one.start()
  two.start()
  const look = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      await world.run(1_000)
      cluster(one)
    }
    return cluster(one).find(({ self }) => !self)?.events
  }
  expect(await look(4)).toEqual([])
  two.block('a', 30_000)
  two.block('b', 60_000)
  const events = await look(3)
  expect(events).toMatchObject([
    { name: 'blocked', policy: 'user', key: 'b', cause: 'manual', durationMs: 60_000 },
    { name: 'blocked', policy: 'user', key: 'a', cause: 'manual', durationMs: 30_000 },
  ])
  expect(events?.[0]?.ageMs).toBeGreaterThanOrEqual(1_000)
  for (let i = 0; i < 500; i++) two.block(`b${i}`, 30_000)
  store.health = 'rejecting'
  await world.run(5_000)
  store.health = 'up'
  const later = await look(5)
  expect(later?.filter(({ name }) => name === 'blocked')).toHaveLength(10)
  expect(later?.map(({ name }) => name)).toContain('storeUp')
})

test('a key whose limit becomes 0 has no infinite overshoot, which would hide the process', async () => {
  const { world, node } = scene()
  const [one, two] = [node({ name: 'user', limit: 100, interval: '1m' }), node({ name: 'user', limit: 100, interval: '1m' })]
  for (const throttler of [one, two]) offer(throttler, 'a', 30)
  await world.run(1_000)
  for (let i = 0; i < 4; i++) {
    two.check('a', { limit: 0 })
    two.charge('a', 1)
    offer(one, 'a', 1)
    cluster(one)
    await world.run(1_000)
  }
  expect(snapshot(two).policies[0]?.measuredOvershoot).toBe(0)
  expect(cluster(one)).toHaveLength(2)
})

test('an event of the store is in the status of a process once, whatever its number of throttlers', async () => {
  const hub = new Hub(systemClock)
  const made = (store = memoryStore(hub), name = 'user') =>
    createThrottler({ store, policies: [{ name, limit: 5, interval: '1h' }], heartbeat: '100ms' })
  const store = memoryStore(hub)
  const all = [made(store), made(store, 'login')]
  for (const throttler of all) throttler.start()
  const [one] = all as [ReturnType<typeof made>]
  cluster(one)
  await expect.poll(() => snapshot(one).state).toBe('synced')
  const other = made()
  other.start()
  await expect.poll(() => all.every((throttler) => snapshot(throttler).events.some(({ count }) => count === 2))).toBe(true)
  expect(cluster(one)[0]?.events.filter(({ count }) => count === 2)).toHaveLength(1)
  for (const throttler of [...all, other]) await throttler.close()
})
