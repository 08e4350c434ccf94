import { expect, test, vi } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { BUCKETS, central, flood, startsOf } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import { mostInASecond, startTimes, type Waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const DELAYED: Partial<PolicyOptions<never>> = { delay: '4s' }

test('one node alone asks nobody', async () => {
  const { world, store, queues, close } = await backgroundNodes(1)
  const before = store.requests.length
  for (let i = 0; i < 30; i++) queues[0]?.acquire('a')
  await world.run(3_500)
  const went = startTimes(queues[0]?.ended ?? [])
  expect(went.map((at, place) => at - (went[0] as number) - 100 * place).every((late) => Math.abs(late) <= 2)).toBe(true)
  expect(store.requests.length - before).toBeLessThanOrEqual(40)
  await close()
})

test.each([1, 3])('a flood of windows costs the store few requests, and no interval has more than the limit: %i nodes', async (count) => {
  const it = await central(count)
  flood(it.queues, 600)
  await it.world.run(8_000)
  const went = it.queues.flatMap(({ ended }) => ended).map(({ at }) => at as number)
  expect(went).toHaveLength(600)
  for (let from = 20_000; from < 28_000; from += 1_000)
    expect(went.filter((at) => at - 1 >= from && at - 1 < from + 1_000).length, `from ${from}`).toBeLessThanOrEqual(100)
  expect(Math.max(...went)).toBeLessThanOrEqual(25_400)
  expect(it.asked().length).toBeLessThanOrEqual(0.25 * 600)
  await it.close()
})

test('costs are asked for as they are: only those of the same cost together', async () => {
  const it = await central(1, { limit: 40, interval: 60_000 })
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 12; i++) queue.acquire('a', { cost: i < 8 ? 2 : 3 })
  await it.world.run(200)
  expect(queue.went).toHaveLength(12)
  expect(it.asked().reduce((sum, units) => sum + units, 0)).toBe(8 * 2 + 4 * 3)
  expect(it.nodes[0]?.peek('a', 0).remaining).toBe(12)
  await it.close()
})

test.each(BUCKETS.flatMap((bucket) => [1, 3, 12].map((count) => ({ ...bucket, count }))))(
  'a flood costs few commands, and the pace is kept and used: $name, $count nodes',
  async ({ algorithm, atOnce, count }) => {
    const it = await central(count, { algorithm })
    flood(it.queues, 600)
    await it.world.run(8_000)
    const went = startsOf(it)
    expect(went).toHaveLength(600)
    expect(mostInASecond(went)).toBeLessThanOrEqual(100 + atOnce)
    expect(went.at(-1)).toBeLessThanOrEqual(20_000 + (600 - atOnce) * 10 + 15)
    expect(it.asked().length).toBeLessThanOrEqual((count === 12 ? 0.45 : 0.2) * 600)
    await it.close()
  },
)

test.each(BUCKETS.filter(({ atOnce }) => atOnce >= 5))(
  'requests that take more or less are asked for together, each as what it takes: $name',
  async (bucket) => {
    const it = await central(2, { algorithm: bucket.algorithm }, 40)
    for (let i = 0; i < 200; i++) it.queues[i % 2]?.acquire('a', { cost: 1 + (i % 5), timeout: '30s' })
    await it.world.run(8_000)
    const went = startsOf(it)
    expect(went).toHaveLength(200)
    // The requests have 600 units in total.
    expect(went.at(-1)).toBeLessThanOrEqual(20_000 + (600 - bucket.atOnce) * 10 + 90)
    expect(it.asked().reduce((sum, units) => sum + units, 0)).toBe(600)
    expect(it.asked().length).toBeLessThanOrEqual(60)
    const order = it.queues[0]?.went.map((name) => Number(name.slice(1)))
    expect(order).toEqual(order?.toSorted((one, other) => one - other))
    await it.close()
  },
)

test.each([
  { name: 'windows', policy: DELAYED, within: 4_400 },
  { name: 'a bucket', policy: { ...DELAYED, algorithm: tokenBucket() }, within: 3_010 },
])('requests that `delay` holds are asked for together: $name', async ({ policy, within }) => {
  const it = await central(3, policy)
  // Loads the queue first.
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
  // Each request was sent once when it came.
  expect(before).toBeGreaterThanOrEqual(100)
  expect(it.asked().length - asked - before).toBeLessThanOrEqual(0.5 * 300)
  await it.close()
})

test.each([22, 24, 26])('requests without patience use all units that another process left: %i of 30 are used', async (used) => {
  const it = await central(2, { limit: 30 })
  const [queue] = it.queues as [Waiting]
  queue.tryAcquire('a')
  await it.world.run(10)
  // The first process sends more together than fit, because it has not received these counts.
  for (let i = 0; i < used; i++) void (it.nodes[1] as Node).checkAsync('a')
  await it.world.run(4)
  const made = Array.from({ length: 20 }, () => queue.tryAcquire('a', { timeout: 0 }))
  await it.world.run(500)
  expect(made.filter(({ decision }) => decision?.allowed === true)).toHaveLength(29 - used)
  await it.close()
})
