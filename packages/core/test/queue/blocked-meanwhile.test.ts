import { expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { central } from '../support/central-queues.ts'
import { scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

const POLICY = { limit: 10, interval: 1_000, algorithm: leakyBucket() } as const

test('nobody goes while the key is blocked by hand, also who had a place before', async () => {
  const it = scene()
  const node = it.node({ ...POLICY, coordination: 'local' })
  const queue = await waiting(it, node)
  for (let i = 0; i < 8; i++) queue.acquire('a', { name: String(i), timeout: i === 7 ? 1_500 : '30s' })
  const begun = it.world.time
  await it.world.run(250)
  expect(queue.went).toEqual(['0', '1', '2'])
  node.block('a', 3_000)
  await it.world.run(2_990)
  expect(queue.went).toEqual(['0', '1', '2'])
  expect(queue.ended.find(({ name }) => name === '7')?.failure).toBe('timeout')
  expect(node.waiting).toBe(4)
  await it.world.run(1_000)
  expect(queue.went).toEqual(['0', '1', '2', '3', '4', '5', '6'])
  const times = queue.ended.filter(({ decision }) => decision?.allowed === true).map(({ at }) => (at as number) - begun)
  expect(times.slice(3)).toEqual([3_250, 3_350, 3_450, 3_550])
  expect(node.waiting).toBe(0)
  await it.close()
})

test('of several nodes, too, and they go on when it is unblocked', async () => {
  const it = await central(3, POLICY)
  for (let i = 0; i < 60; i++) it.queues[i % 3]?.acquire('a', { timeout: '30s' })
  await it.world.run(1_000)
  const went = () => it.queues.flatMap((queue) => queue.went).length
  const before = went()
  expect(before).toBeGreaterThanOrEqual(10)
  it.nodes[0]?.block('a', 20_000)
  await it.world.run(600)
  const then = went()
  // Others hear of it with their next exchange.
  expect(then - before).toBeLessThanOrEqual(6)
  await it.world.run(3_000)
  expect(went()).toBe(then)
  it.nodes[0]?.unblock('a')
  await it.world.run(7_000)
  expect(went()).toBe(60)
  const times = it.queues.flatMap((queue) => queue.ended).map(({ at }) => at as number)
  for (const from of times) expect(times.filter((at) => at >= from && at < from + 1_000).length).toBeLessThanOrEqual(11)
  for (const node of it.nodes) expect(node.waiting).toBe(0)
  await it.close()
})

test('one that was decided about before it was held goes on', async () => {
  const it = scene()
  const node = it.node({ ...POLICY, coordination: 'local' })
  const decisions = [node.check('a'), node.check('a')]
  const held = (decisions[1] && node.waitFor(decisions[1])) as Promise<unknown>
  let done = false
  void held.then(() => (done = true))
  await waiting(it, node)
  node.block('a', 3_000)
  await it.world.run(150)
  expect(done).toBe(true)
  await it.close()
})

test('with as many waiting as may, who has to wait again does', async () => {
  const it = scene()
  const node = it.node({ ...POLICY, coordination: 'local' }, { queue: { maxWaiting: 4 } })
  const queue: Waiting = await waiting(it, node)
  for (let i = 0; i < 5; i++) queue.acquire('a', { timeout: '30s' })
  await it.world.run(50)
  expect(node.waiting).toBe(4)
  node.block('a', 1_000)
  await it.world.run(2_000)
  expect(queue.went).toHaveLength(5)
  await it.close()
})
