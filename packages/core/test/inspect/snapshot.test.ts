import { expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'

test('the most used keys are found among many, and stay known from one look to the next', () => {
  const { node } = scene()
  const throttler = node({ limit: 1_000, interval: '1h' }, { alone: true, maxKeys: 150_000 })
  for (let i = 0; i < 120_000; i++) throttler.check(`cold ${i}`)
  offer(throttler, 'hot', 50)
  for (let i = 0; i < 3; i++) snapshot(throttler)
  offer(throttler, 'hot', 1)
  for (let i = 0; i < 5; i++) {
    expect(snapshot(throttler).top[0]).toEqual({ policy: 'default', key: 'hot', used: 51, own: 51, limit: 1_000 })
  }
}, 30_000)

test('units that the store does not know of, and since when', async () => {
  const { world, node, store } = scene()
  const throttler = node({ limit: 1_000, interval: '1m' })
  throttler.start()
  await world.run(10)
  offer(throttler, 'a', 400)
  await world.run(100)
  expect(snapshot(throttler).policies[0]).toMatchObject({ unsynced: 0, unsyncedAgeMs: 0 })
  store.health = 'rejecting'
  offer(throttler, 'a', 150)
  await world.run(5_000)
  const [policy] = snapshot(throttler).policies
  expect(policy?.unsynced).toBe(150)
  expect(policy?.unsyncedAgeMs).toBeGreaterThanOrEqual(5_000)
  expect(policy?.unsyncedAgeMs).toBeLessThan(5_300)
  store.health = 'up'
  await world.run(500)
  expect(snapshot(throttler).policies[0]).toMatchObject({ unsynced: 0, unsyncedAgeMs: 0 })
})

test('what unsent units may exceed the limit by, and the share of the traffic', async () => {
  const { world, node, store } = scene()
  const nodes = [node({ limit: 1_000, interval: '1m' }), node({ limit: 1_000, interval: '1m' })] as const
  for (const one of nodes) one.start()
  await world.run(2_500)
  offer(nodes[0], 'a', 300)
  offer(nodes[1], 'a', 100)
  await world.run(100)
  offer(nodes[0], 'a', 300)
  await world.run(100)
  expect(snapshot(nodes[0]).policies[0]?.overshoot).toBe(0)
  expect(snapshot(nodes[0]).policies[0]?.share).toBeGreaterThan(0.8)
  store.health = 'rejecting'
  await world.run(1_500)
  offer(nodes[0], 'a', 1_000)
  const { unsynced, overshoot } = snapshot(nodes[0]).policies[0] ?? { unsynced: 0, overshoot: 0 }
  const used = snapshot(nodes[0]).top[0]?.used ?? 0
  expect(unsynced).toBeGreaterThan(100)
  expect(overshoot).toBeCloseTo(Math.max(0, used + unsynced - 1_000) / 1_000)
})

test('sync health', async () => {
  const { world, node, store } = scene()
  store.roundTrip = 4
  const throttler = node({ limit: 10, interval: '1m' })
  expect(snapshot(throttler).sync).toMatchObject({ exchanges: 0, failures: 0, sinceSuccessMs: undefined })
  throttler.start()
  await world.run(9)
  expect(snapshot(throttler).sync).toMatchObject({ lastDurationMs: 4, lastError: undefined, sinceSuccessMs: 5 })
  store.health = 'hanging'
  await world.run(3_000)
  const { sync, state, storeDownMs } = snapshot(throttler)
  expect(state).toBe('storeDown')
  expect(storeDownMs).toBeGreaterThan(1_000)
  expect(sync.failures).toBeGreaterThan(1)
  expect(sync.failuresByCause.rejected).toBe(sync.failures)
  expect(sync.lastError).toBe('The store did not answer.')
})

test('blocked keys: all are counted, the newest are listed, and those whose time is over are not', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 10, interval: '1m' }, { alone: true })
  const ended: string[] = []
  throttler.on('unblocked', ({ key, cause }) => ended.push(`${key} ${cause}`))
  for (let i = 0; i < 500; i++) throttler.block(`key ${i}`, 60_000 + i)
  throttler.block('short', 100)
  const { blocked, policies } = snapshot(throttler, { blocked: 3 })
  expect(policies[0]?.blocked).toBe(501)
  expect(blocked.map(({ key }) => key)).toEqual(['key 499', 'key 498', 'short'])
  expect(snapshot(throttler, { contains: '42', blocked: 20 }).blocked.map(({ key }) => key)).toContain('key 142')
  await world.run(200)
  expect(snapshot(throttler).policies[0]?.blocked).toBe(500)
  expect(ended).toEqual(['short expired'])
})
