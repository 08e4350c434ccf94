import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { central } from '../support/central-queues.ts'
import { scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

const POLICY = { limit: 10, interval: 1_000, algorithm: leakyBucket() } as const

describe('what comes free early is used', () => {
  test.each([
    ['refunded', (node, first) => node.refund(first)],
    ['reset', (node) => node.reset('a')],
    ['given another limit', (node) => node.update([{ ...LOCAL, limit: 3 }])],
  ] as [string, (node: ReturnType<ReturnType<typeof scene>['node']>, first: ReturnType<typeof node.check>) => void][])(
    '%s',
    async (_, free) => {
      const it = scene()
      const node = it.node(LOCAL)
      const queue = await waiting(it, node)
      const first = node.check('a')
      node.check('a')
      const next = queue.acquire('a')
      await it.world.run(300)
      free(node, first)
      await it.world.run(10)
      expect(next.at).toBeGreaterThanOrEqual(300)
      expect(next.at).toBeLessThanOrEqual(302)
      await it.close()
    },
  )

  test('unblocked by hand, here or at another node', async () => {
    const it = scene()
    const nodes = [it.node({ limit: 5, interval: 1_000 }), it.node({ limit: 5, interval: 1_000 })] as const
    const queue = await waiting(it, nodes[0])
    for (const node of nodes) node.start()
    await it.world.run(1_500)
    nodes[0].block('a', '20s')
    nodes[0].block('b', '20s')
    const a = queue.acquire('a')
    const b = queue.acquire('b')
    await it.world.run(1_000)
    const begun = it.world.time
    nodes[0].unblock('a')
    nodes[1].unblock('b')
    await it.world.run(1_500)
    expect(a.at).toBeLessThanOrEqual(begun + 2)
    expect(b.at).toBeLessThanOrEqual(begun + 1_200)
    await it.close()
  })
})

test('when a key is reset whoever waits goes on', async () => {
  const { world, nodes, queues, close } = await backgroundNodes(2)
  for (const queue of queues) for (let i = 0; i < 10; i++) queue.acquire('a', { timeout: '20s' })
  await world.run(300)
  nodes[0]?.reset('a')
  await world.run(3_000)
  expect(queues.flatMap(({ went }) => went)).toHaveLength(20)
  await close()
})

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
  // Other processes receive the block with their next sync.
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
