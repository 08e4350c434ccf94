import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { Occupancy } from '../../src/queue/occupancy.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { offer, scene } from '../support/nodes.ts'
import { startTimes, type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

describe('queues are bounded', () => {
  test('per key, also if requests keep a pace', async () => {
    const it = scene()
    const policy = { limit: 1, interval: '1s', algorithm: leakyBucket({ burst: 100 }), coordination: 'local' } as const
    const node = it.node(policy, { queue: { maxWaitingPerKey: 3 } })
    const queue = await waiting(it, node)
    const all = Array.from({ length: 6 }, () => queue.acquire('a'))
    await it.world.settle()
    expect(all.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, undefined, 'queue-full', 'queue-full'])
    // The rejected requests used no units.
    await it.world.run(1_000)
    const next = queue.acquire('a')
    await it.world.run(3_000)
    expect(next.at).toBe(4_000)
    await it.close()
  })

  test('per key, and in all', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 }, { queue: { maxWaiting: 5, maxWaitingPerKey: 3 } })
    const queue = await waiting(it, node)
    for (const key of ['a', 'b']) offer(node, key, 1)
    const a = [0, 1, 2, 3].map(() => queue.acquire('a'))
    const b = [0, 1, 2].map(() => queue.acquire('b'))
    await it.world.settle()
    expect(a.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, 'queue-full'])
    expect(b.map(({ failure }) => failure)).toEqual([undefined, undefined, 'queue-full'])
    // A request that ends makes room for another.
    await it.world.run(1_000)
    const next = queue.acquire('a')
    await it.world.run(10_000)
    expect(next.decision?.allowed).toBe(true)
    await it.close()
  })

  test('a request waits no longer than maxWait', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, interval: '1h' }, { queue: { maxWait: '10s' } })
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    expect(queue.acquire('a').failure).toBeUndefined()
    await it.world.settle()
    expect(queue.ended[0]?.failure).toBe('timeout')
    await expect(node.acquire('a', { timeout: '11s' })).rejects.toThrow('Option "timeout" is "11s"')
    await it.close()
  })
})

test('a client may have as many places as are free, and what is remembered of clients ends with their last request', () => {
  const occupancy = new Occupancy(100)
  const had = (client: string): number => {
    let count = 0
    for (; !occupancy.isFull(client); count++) occupancy.add(client)
    return count
  }
  expect([had('a'), had('b'), had('c'), had('d'), had('a')]).toEqual([50, 25, 13, 6, 0])
  for (let i = 0; i < 25; i++) occupancy.remove('a')
  // A client with fewer requests than the others may still add one.
  expect([had('a'), had('d'), had('e')]).toEqual([3, 11, 9])
  const single = new Occupancy(1)
  expect(single.isFull('a')).toBe(false)
  single.add('a')
  expect([single.isFull('a'), single.isFull('b'), single.isFull(undefined)]).toEqual([true, true, true])
})

test('keys that have no place in memory wait without places', async () => {
  const { world, queues, close } = await backgroundNodes(2, {}, 2, { maxKeys: 1 })
  const [one, other] = queues as [Waiting, Waiting]
  for (const key of ['a', 'b', 'c']) for (const queue of [one, other]) for (let i = 0; i < 3; i++) queue.acquire(key, { timeout: '20s' })
  await world.run(8_000)
  expect(startTimes([...one.ended, ...other.ended])).toHaveLength(18)
  await close()
})
