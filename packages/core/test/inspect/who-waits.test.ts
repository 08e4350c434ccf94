import { expect, onTestFinished, test } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, LONGEST_STATUS, parseStatus } from '../../src/inspect/status-text.ts'
import { offer, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LOCAL = { limit: 1, interval: 1_000, coordination: 'local' } as const

test('a snapshot tells how many wait for a policy, for how long and for which keys', async () => {
  const it = scene()
  const node = it.node([
    { ...LOCAL, name: 'key' },
    { ...LOCAL, name: 'all', key: 'all', limit: 3, interval: 10_000 },
  ])
  expect(snapshot(node)).toMatchObject({ waiting: [], policies: [{ waiting: 0, longestWaitMs: 0 }, { waiting: 0 }] })
  const queue = await waiting(it, node)
  for (let i = 0; i < 4; i++) queue.acquire('a')
  await it.world.run(300)
  for (let i = 0; i < 2; i++) queue.acquire('b')
  await it.world.run(100)
  expect(snapshot(node).waiting).toEqual([
    { policy: 'key', key: 'a', requests: 3, longest: 400 },
    { policy: 'key', key: 'b', requests: 1, longest: 100 },
  ])
  expect(snapshot(node).policies).toMatchObject([
    { waiting: 4, longestWaitMs: 400 },
    { waiting: 0, longestWaitMs: 0 },
  ])
  expect(snapshot(node, { top: 1 }).waiting).toHaveLength(1)
  // One request of each key is allowed, and then the other policy delays the rest.
  await it.world.run(1_000)
  expect(snapshot(node).policies).toMatchObject([{ waiting: 0 }, { waiting: 3, longestWaitMs: 1_400 }])
  expect(snapshot(node).waiting).toEqual([{ policy: 'all', key: 'all', requests: 3, longest: 1_400 }])
  await it.close()
  expect(snapshot(node)).toMatchObject({ waiting: [], policies: [{ waiting: 0 }, { waiting: 0 }] })
})

test('requests that are held for a pace wait as well', async () => {
  const it = scene()
  const node = it.node({ name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 5 }), coordination: 'local' })
  const queue = await waiting(it, node)
  for (let i = 0; i < 4; i++) queue.acquire('a')
  await it.world.run(150)
  expect(snapshot(node).waiting).toEqual([{ policy: 'pace', key: 'a', requests: 2, longest: 150 }])
  expect(snapshot(node).policies[0]?.waiting).toBe(2)
  await it.world.run(1_000)
  expect(snapshot(node).policies[0]?.waiting).toBe(0)
})

test('requests that the store decides about wait as well, and of them none is forgotten', async () => {
  const it = scene()
  const node = it.node({ name: 'leased', limit: 5, interval: 1_000, coordination: 'leased' })
  const waits: number[] = []
  node.on('waited', ({ policy, key, durationMs: time }) => {
    expect([policy, key]).toEqual(['leased', 'a'])
    waits.push(time)
  })
  const queue = await waiting(it, node)
  for (let i = 0; i < 30; i++) queue.acquire('a')
  await it.world.run(500)
  const { policies, waiting: keys } = snapshot(node)
  expect(policies[0]?.waiting).toBe(25)
  expect(keys).toMatchObject([{ policy: 'leased', key: 'a', requests: 25 }])
  await it.world.run(10_000)
  expect(queue.went).toHaveLength(30)
  expect(snapshot(node).policies[0]?.waiting).toBe(0)
  expect(waits.filter((time) => time > 100)).toHaveLength(25)
  await it.close()
})

test('each request that waited and went is an event', async () => {
  const it = scene()
  const node = it.node([
    { ...LOCAL, name: 'key' },
    { ...LOCAL, name: 'pace', key: 'all', limit: 4, algorithm: leakyBucket({ burst: 1 }) },
  ])
  const events: unknown[] = []
  const queue = await waiting(it, node)
  node.on('waited', (event) => events.push(event))
  queue.acquire('a')
  queue.acquire('b')
  queue.acquire('a')
  await it.world.run(2_000)
  expect(events).toEqual([
    { policy: 'pace', key: 'all', durationMs: 250 },
    { policy: 'key', key: 'a', durationMs: 1_000 },
  ])
})

test('requests that do not go are counted by reason', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, interval: 60_000 }, { queue: { maxWaitingPerKey: 3 } })
  const queue = await waiting(it, node)
  const before = snapshot(node).waitFailures
  const controller = new AbortController()
  queue.acquire('a')
  queue.acquire('a', { timeout: 10 })
  queue.acquire('a', { timeout: '30s' })
  queue.acquire('b', { cost: 2 })
  queue.acquire('c')
  for (let i = 0; i < 4; i++) queue.acquire('c', i === 0 ? { signal: controller.signal } : {})
  controller.abort()
  await it.world.run(1)
  const { waitFailures } = snapshot(node)
  const reasons = queue.ended.flatMap(({ failure }) => failure ?? [])
  expect(reasons.length).toBeGreaterThan(3)
  for (const [reason, count] of Object.entries(waitFailures)) {
    expect(count - before[reason as keyof typeof before], reason).toBe(reasons.filter((one) => one === reason).length)
  }
})

test('the other nodes tell who waits at them, and who holds slots', async () => {
  const it = scene()
  const policies = [
    { name: 'rate', limit: 4, interval: '10s' },
    { name: 'slots', limit: 6, algorithm: concurrency(), coordination: 'leased' },
  ] as const
  const [one, two] = [it.node([...policies]), it.node([...policies])]
  one.start()
  two.start()
  const queue = await waiting(it, two)
  await it.world.run(100)
  for (let i = 0; i < 7; i++) queue.acquire('a')
  for (let i = 0; i < 3; i++) {
    cluster(one)
    await it.world.run(1_000)
  }
  const other = cluster(one).find(({ self }) => !self)
  expect(other?.policies).toMatchObject([
    { name: 'rate', waiting: 3 },
    { name: 'slots', inFlight: 4, waiting: 0 },
  ])
  expect(other?.waiting).toMatchObject([{ policy: 'rate', key: 'a', requests: 3 }])
  expect(other?.waiting[0]?.longest).toBe(other?.policies[0]?.longestWaitMs)
  expect(other?.top).toContainEqual({ policy: 'slots', key: 'a', used: 4, own: 4, limit: 6 })
  await it.close()
})

test('the list of those that wait is bounded where it travels', () => {
  const { node } = scene()
  const throttler = node({ limit: 1, interval: '1m' }, { alone: true })
  onTestFinished(() => throttler.close())
  offer(throttler, 'a', 1)
  const key = `"${'x'.repeat(200)}`
  const waiting = Array.from({ length: 1_000 }, (_, i) => ({ policy: 'default', key: `${key}${i}`, requests: 1, longest: i }))
  const text = formatStatus(statusOf({ ...snapshot(throttler), waiting }, 'host:1', 5))
  expect(text.length).toBeLessThanOrEqual(LONGEST_STATUS)
  expect(parseStatus(text)?.waiting.length).toBeLessThanOrEqual(10)
  for (const bad of [7, [7], [{ policy: 'a', key: 'b', requests: '1', longest: 1 }]])
    expect(parseStatus(JSON.stringify({ ...JSON.parse(text), waiting: bad }))).toBeUndefined()
})
