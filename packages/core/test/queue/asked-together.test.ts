import { expect, test, vi } from 'vitest'
import { central, flood } from '../support/central-queues.ts'
import type { Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

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

test.each([0, 300, 900])('in a flood all nodes wait equally long, whenever in an interval it comes: %i ms', async (after) => {
  const it = await central(12)
  await it.world.run(after)
  flood(it.queues, 600)
  await it.world.run(8_000)
  const waits = it.queues.map(({ ended }) => ended.reduce((sum, { at }) => sum + (at as number) - 20_000 - after, 0) / ended.length)
  expect(it.queues.map(({ ended }) => ended.length)).toEqual(Array.from({ length: 12 }, () => 50))
  expect(Math.max(...waits) / Math.min(...waits)).toBeLessThanOrEqual(1.5)
  await it.close()
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

test('one that is aborted while several are asked for gives its own unit back, and no other', async () => {
  const it = await central(1, { limit: 20, interval: 60_000 }, 20)
  const [queue] = it.queues as [Waiting]
  const controller = new AbortController()
  for (let i = 0; i < 12; i++) queue.acquire('a', i === 8 ? { name: 'aborted', signal: controller.signal } : {})
  await it.world.run(30)
  controller.abort()
  await it.world.run(100)
  expect(Math.max(...it.asked())).toBeGreaterThan(1)
  expect(queue.went).toHaveLength(11)
  expect(queue.went).not.toContain('aborted')
  expect(it.nodes[0]?.peek('a', 0).remaining).toBe(9)
  const usage = it.nodes[0]?.usage('a')
  await it.world.run(100)
  expect((await usage)?.[0]?.used).toBe(11)
  await it.close()
})

test.each([0, 20])('those that have no time to wait are asked for at once, where there is room: %i ms', async (timeout) => {
  const it = await central(1, {}, 40)
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 130; i++) queue.acquire('a', { name: String(i), timeout })
  await it.world.run(200)
  expect(queue.ended).toHaveLength(130)
  expect(queue.went).toEqual(Array.from({ length: 100 }, (_, i) => String(i)))
  expect(it.asked().length).toBeLessThanOrEqual(20)
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

test.each(['share', 'closed', 'open'] as const)(
  'after a lost answer the store counts those that went, and no others: %s',
  async (failMode) => {
    const it = await central(1, { limit: 60, interval: 60_000, failMode }, 20)
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
    // The first few are asked for one by one, and the others when these are answered.
    await it.world.run(10)
    it.store.health = 'mute'
    await it.world.run(15)
    expect(Math.max(...it.asked())).toBeGreaterThan(1)
    await it.world.run(500)
    it.store.health = 'up'
    await it.world.run(4_000)
    const went = queue.ended.filter(({ decision }) => decision?.allowed === true).length
    expect(queue.ended).toHaveLength(30)
    const usage = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await usage)?.[0]?.used).toBe(went)
    await it.close()
  },
)
