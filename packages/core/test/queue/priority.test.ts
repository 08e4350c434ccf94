import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { central } from '../support/central-queues.ts'
import { scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

describe('a request', () => {
  test('with a higher priority goes first, among equals the first that came', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    queue.acquire('a', { name: 'first' })
    for (const [name, priority] of [
      ['low', 'low'],
      ['b', 'default'],
      ['high', 'high'],
      ['critical', 'critical'],
      ['sheddable', 'sheddable'],
      ['c', undefined],
      ['high too', 'high'],
    ] as const) {
      queue.acquire('a', { name, ...(priority && { priority }) })
    }
    await it.world.run(8_000)
    expect(queue.went).toEqual(['first', 'critical', 'high', 'high too', 'b', 'c', 'low', 'sheddable'])
    await it.close()
  })
})

test('those that are asked for together go in their order, the highest priority first', async () => {
  const it = await central(1, { limit: 20 })
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 20; i++) queue.acquire('a', { name: `before ${i}` })
  await it.world.run(100)
  for (const [name, priority] of [
    ['late', 'low'] as const,
    ['a', 'default'] as const,
    ['b', 'default'] as const,
    ['urgent', 'high'] as const,
  ])
    queue.acquire('a', { name, priority })
  await it.world.run(1_200)
  expect(queue.went.slice(20)).toEqual(['urgent', 'a', 'b', 'late'])
  expect(it.asked().length).toBeLessThan(20)
  await it.close()
})

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
