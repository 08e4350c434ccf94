import { describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { leakyBucket } from '../../src/index.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { central, flood } from '../support/central-queues.ts'
import { scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

type Policy = Partial<PolicyOptions<never>>

const SECOND: Policy = { name: 'second', limit: 100, interval: 1_000 }

const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

test('who would not go in time in its turn goes at once when there is room', async () => {
  const it = scene()
  it.store.roundTrip = 1
  const policy = { limit: 10, interval: 1_000, coordination: 'background' } as const
  const [node, other] = [it.node(policy), it.node(policy)]
  for (const one of [node, other]) one.start()
  const queue = await waiting(it, node)
  await it.world.runTo(3_100)
  for (const key of ['a', 'b']) node.check(key)
  await it.world.runTo(3_200)
  for (const key of ['a', 'b']) for (let i = 0; i < 9; i++) other.check(key)
  await it.world.runTo(3_300)
  const hasTime = queue.acquire('a', { timeout: '5s' })
  const hasNone = queue.acquire('b', { timeout: 703 })
  await it.world.runTo(5_000)
  expect(hasNone).toMatchObject({ decision: { allowed: true } })
  expect(hasNone.at).toBeLessThanOrEqual(4_003)
  expect(hasTime).toMatchObject({ decision: { allowed: true } })
  expect(hasTime.at).toBeGreaterThan(4_005)
  expect(hasTime.at).toBeLessThanOrEqual(4_000 + 200)
  await it.close()
})

test('nodes are served by what waits with them', async () => {
  const { world, queues, close } = await backgroundNodes(4, { limit: 60 })
  const parts = [1, 2, 3, 6]
  for (const [node, queue] of queues.entries())
    for (let i = 0; i < 120 * (parts[node] as number); i++) queue.acquire('a', { timeout: '30s' })
  await world.runTo(12_100)
  const served = queues.map(({ went }) => went.length)
  for (const [node, count] of served.entries()) {
    const part = (10 * 60 * (parts[node] as number)) / 12
    expect(count / part, `${served}`).toBeGreaterThan(0.8)
    expect(count / part, `${served}`).toBeLessThan(1.2)
  }
  await close()
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

describe('requests that several policies count are asked for together', () => {
  test('twelve nodes wait equally long', async () => {
    const it = await central(12, [SECOND, LONG])
    flood(it.queues, 600)
    await it.world.run(12_000)
    const waits = it.queues.map(({ ended }) => ended.reduce((sum, { at }) => sum + (at as number) - 20_000, 0) / ended.length)
    expect(it.queues.map(({ ended }) => ended.length)).toEqual(Array.from({ length: 12 }, () => 50))
    expect(Math.max(...waits) / Math.min(...waits)).toBeLessThanOrEqual(1.5)
    await it.close()
  })
})

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test.each([2, 20])('in a flood nobody goes too early, and nodes wait equally long: %i ms', async (roundTrip) => {
    const it = await central(12, [PACE, { ...LONG, limit: 5_000, interval: 60_000 }], roundTrip)
    flood(it.queues, 600)
    await it.world.run(8_000)
    const ended = it.queues.flatMap(({ ended }) => ended)
    const went = ended.map(({ at }) => at as number).sort((a, b) => a - b)
    expect(went).toHaveLength(600)
    for (let i = 0; i + 50 < went.length; i++) expect((went[i + 50] as number) - (went[i] as number)).toBeGreaterThanOrEqual(490)
    expect(Math.max(...went)).toBeLessThanOrEqual(26_000 + 3 * roundTrip)
    for (const { decision } of ended)
      expect(decision?.parts.map(({ policy, delayMs: delay }) => [policy?.name, delay])).toEqual([
        ['pace', 0],
        ['long', 0],
      ])
    const waits = it.queues.map(({ ended }) => ended.reduce((sum, { at }) => sum + (at as number) - 20_000, 0) / ended.length)
    expect(Math.max(...waits) / Math.min(...waits)).toBeLessThanOrEqual(1.5)
    // The window needs a question for each request, and the bucket one for several.
    expect(it.asked().length).toBeLessThanOrEqual(1.4 * 600)
    await it.close()
  })
})
