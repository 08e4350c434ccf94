import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { ask } from '../support/central.ts'
import { type CentralNodes, central, flood } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import type { Outcome, Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

const ended = ({ queues }: CentralNodes): readonly Outcome[] => queues.flatMap((queue) => queue.ended)

/** When those went that did, in their order. */
function goes(it: CentralNodes): number[] {
  const went = ended(it).filter(({ decision }) => decision?.allowed === true)
  return went.map(({ at }) => at as number).sort((a, b) => a - b)
}

/** The most requests that went within any second. */
function mostInSecond(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
}

const BUCKETS = [
  { name: 'leaky', algorithm: leakyBucket(), atOnce: 1 },
  { name: 'leaky, none may wait in it', algorithm: leakyBucket({ burst: 0 }), atOnce: 1 },
  { name: 'leaky, some at once', algorithm: leakyBucket({ burst: 20, immediate: 10 }), atOnce: 11 },
  { name: 'token', algorithm: tokenBucket(), atOnce: 100 },
  { name: 'token, few', algorithm: tokenBucket({ burst: 5 }), atOnce: 5 },
]

test.each(BUCKETS.flatMap((bucket) => [1, 3, 12].map((count) => ({ ...bucket, count }))))(
  'a flood costs few commands, and the pace is kept and used: $name, $count nodes',
  async ({ algorithm, atOnce, count }) => {
    const it = await central(count, { algorithm })
    flood(it.queues, 600)
    await it.world.run(8_000)
    const went = goes(it)
    expect(went).toHaveLength(600)
    expect(mostInSecond(went)).toBeLessThanOrEqual(100 + atOnce)
    expect(went.at(-1)).toBeLessThanOrEqual(20_000 + (600 - atOnce) * 10 + 15)
    expect(it.asked().length).toBeLessThanOrEqual((count === 12 ? 0.45 : 0.2) * 600)
    await it.close()
  },
)

test.each(BUCKETS)('where requests have to go in time each does, and no place stays unused: $name', async ({ algorithm, atOnce }) => {
  const it = await central(3, { algorithm })
  // Twice as many as may go, for ten seconds.
  for (let at = 0; at < 10_000; at += 5) {
    it.queues[at % 3]?.acquire('a', { timeout: 500 })
    await it.world.run(5)
  }
  await it.world.run(1_000)
  const all = ended(it)
  expect(all).toHaveLength(2_000)
  expect(all.every(({ decision, failure }) => decision?.allowed === true || failure === 'timeout')).toBe(true)
  const went = goes(it)
  expect(went.length).toBeGreaterThanOrEqual(1_000 + 40)
  expect(went.length).toBeLessThanOrEqual(1_000 + 50 + atOnce)
  expect(mostInSecond(went)).toBeLessThanOrEqual(102 + atOnce)
  await it.close()
})

test('one that is aborted while it has a place, or while that is asked for, leaves it to the next one', async () => {
  const it = await central(1, { limit: 10, algorithm: leakyBucket({ burst: 0 }) }, 20)
  const [queue] = it.queues as [Waiting]
  const controllers = Array.from({ length: 10 }, () => new AbortController())
  for (const [i, { signal }] of controllers.entries()) queue.acquire('a', { name: String(i), signal })
  await it.world.run(10)
  controllers[0]?.abort()
  await it.world.run(200)
  controllers[4]?.abort()
  await it.world.run(2_000)
  expect(queue.went).toEqual(['1', '2', '3', '5', '6', '7', '8', '9'])
  const went = goes(it)
  for (const [i, at] of went.entries()) if (i > 0) expect(at - (went[i - 1] as number)).toBeLessThanOrEqual(101)
  await it.close()
})

test.each(BUCKETS.filter(({ atOnce }) => atOnce >= 5))(
  'requests that take more or less are asked for together, each as what it takes: $name',
  async (bucket) => {
    const it = await central(2, { algorithm: bucket.algorithm }, 40)
    for (let i = 0; i < 200; i++) it.queues[i % 2]?.acquire('a', { cost: 1 + (i % 5), timeout: '30s' })
    await it.world.run(8_000)
    const went = goes(it)
    expect(went).toHaveLength(200)
    // 600 units.
    expect(went.at(-1)).toBeLessThanOrEqual(20_000 + (600 - bucket.atOnce) * 10 + 90)
    expect(it.asked().reduce((sum, units) => sum + units, 0)).toBe(600)
    expect(it.asked().length).toBeLessThanOrEqual(60)
    const order = it.queues[0]?.went.map((name) => Number(name.slice(1)))
    expect(order).toEqual(order?.toSorted((one, other) => one - other))
    await it.close()
  },
)

test('the highest priority goes first, also before those that have a place', async () => {
  const it = await central(1, { limit: 10, algorithm: leakyBucket({ burst: 0 }) })
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 3; i++) queue.acquire('a', { name: `before ${i}` })
  await it.world.run(10)
  for (const [name, priority] of [['late', 'low'] as const, ['a', 'default'] as const, ['urgent', 'high'] as const])
    queue.acquire('a', { name, priority })
  await it.world.run(1_000)
  expect(queue.went).toEqual(['before 0', 'urgent', 'before 1', 'before 2', 'a', 'late'])
  await it.close()
})

test('requests with a limit of their own keep the pace of that, and are asked for together', async () => {
  const it = await central(3, { algorithm: leakyBucket() })
  for (let i = 0; i < 120; i++) it.queues[i % 3]?.acquire('a', { limit: 20 })
  await it.world.run(8_000)
  const went = goes(it)
  expect(went).toHaveLength(120)
  expect(mostInSecond(went)).toBeLessThanOrEqual(21)
  expect(went.at(-1)).toBeLessThanOrEqual(26_010)
  expect(it.asked().length).toBeLessThanOrEqual(70)
  // Without one that of the policy holds again.
  for (let i = 0; i < 50; i++) it.queues[0]?.acquire('a')
  await it.world.run(520)
  expect(goes(it)).toHaveLength(170)
  await it.close()
})

test('keys that a policy counts together take turns, and are asked for together', async () => {
  const it = await central(1, { key: 'all', algorithm: leakyBucket({ burst: 0 }) })
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 60; i++) queue.acquire('busy', { name: 'busy' })
  for (let i = 0; i < 5; i++) queue.acquire('quiet', { name: 'quiet' })
  await it.world.run(250)
  expect(queue.went.slice(0, 20).filter((name) => name === 'quiet')).toHaveLength(5)
  await it.world.run(1_000)
  expect(queue.went).toHaveLength(65)
  expect(it.asked().length).toBeLessThanOrEqual(20)
  await it.close()
})

const WINDOW: Partial<PolicyOptions<never>> = { delay: '4s' }

test.each([
  { name: 'windows', policy: WINDOW, within: 4_400 },
  { name: 'a bucket', policy: { ...WINDOW, algorithm: tokenBucket() }, within: 3_010 },
])('requests that `delay` holds are asked for together: $name', async ({ policy, within }) => {
  const it = await central(3, policy)
  // The queue is loaded first.
  let ready = false
  void Promise.all(it.nodes.map((node) => node.checkAsync('b'))).then(() => (ready = true))
  for (; !ready; await new Promise(setImmediate)) await it.world.run(1)
  const begun = Math.ceil(it.world.time / 1_000) * 1_000
  await it.world.runTo(begun)
  const asked = it.asked().length
  const went: number[] = []
  for (let i = 0; i < 400; i++) void it.nodes[i % 3]?.checkAsync('a').then(({ allowed }) => allowed && went.push(it.world.time))
  await it.world.run(100)
  const before = it.asked().length - asked
  await it.world.run(5_000)
  expect(went).toHaveLength(400)
  expect(Math.max(...went)).toBeLessThanOrEqual(begun + within)
  // All of them have asked once when they came.
  expect(before).toBeGreaterThanOrEqual(100)
  expect(it.asked().length - asked - before).toBeLessThanOrEqual(0.5 * 300)
  await it.close()
})

test.each(['share', 'closed', 'open'] as const)(
  'after a lost answer the store counts those that went, and no others: %s',
  async (failMode) => {
    const it = await central(1, { limit: 40, interval: 3_600_000, algorithm: tokenBucket(), failMode }, 20)
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
    await it.world.run(10)
    it.store.health = 'mute'
    await it.world.run(500)
    it.store.health = 'up'
    await it.world.run(4_000)
    expect(queue.ended).toHaveLength(30)
    const usage = it.nodes[0]?.usage('a')
    await it.world.run(100)
    // A bucket loses a little meanwhile.
    expect((await usage)?.[0]?.used).toBeGreaterThan(goes(it).length - 0.1)
    expect((await usage)?.[0]?.used).toBeLessThanOrEqual(goes(it).length)
    await it.close()
  },
)

test('what is given back while the store is away comes back as it was counted: for each node', async () => {
  const it = await central(3, { limit: 30, interval: 3_600_000, algorithm: tokenBucket() })
  it.store.health = 'rejecting'
  await it.world.run(2_000)
  const [node] = it.nodes
  const [decision] = await ask(it, node as Node, 'a', 1)
  expect(decision?.allowed).toBe(true)
  expect(node?.peek('a').remaining).toBeCloseTo(27, 1)
  if (decision !== undefined) node?.refund(decision)
  expect(node?.peek('a').remaining).toBeCloseTo(30, 1)
  await it.close()
})
