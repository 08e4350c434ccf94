import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { central } from '../support/central-queues.ts'
import { offer, scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

describe('a request that can not go in time', () => {
  test('is rejected at once, also when those before it take the room', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    const early = queue.acquire('a', { timeout: 900 })
    const ok = [queue.acquire('a', { timeout: 1_500 }), queue.acquire('a', { timeout: 1_500 })]
    const third = queue.acquire('a', { timeout: 1_500 })
    await it.world.settle()
    expect([early.failure, early.at, early.error?.retryAfterMs]).toEqual(['timeout', 0, 1_000])
    expect([third.failure, third.at, third.error?.retryAfterMs]).toEqual(['timeout', 0, 2_000])
    expect(third.error?.code).toBe('WEIR_NOT_ACQUIRED')
    await it.world.run(1_000)
    expect(ok.map(({ decision }) => decision?.allowed)).toEqual([true, true])
    await it.close()
  })

  test('that costs more than the limit never fits', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    const big = queue.acquire('a', { cost: 3 })
    const nothing = queue.acquire('b', { limit: 0 })
    offer(node, 'c', 2)
    const later = queue.acquire('c', { cost: 2 })
    await it.world.run(10)
    expect([big.failure, nothing.failure, later.failure]).toEqual(['never-fits', 'never-fits', undefined])
    node.update([{ ...LOCAL, limit: 1 }])
    await it.world.run(10)
    expect([later.failure, later.error?.retryAfterMs]).toEqual(['never-fits', Number.POSITIVE_INFINITY])
    await it.close()
  })

  test('gets a decision from tryAcquire', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    offer(node, 'a', 2)
    const rejected = queue.tryAcquire('a', { timeout: 100 })
    const never = queue.tryAcquire('a', { cost: 3, timeout: '5s' })
    const atOnce = queue.tryAcquire('a')
    await it.world.settle()
    expect(rejected.decision).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 1_000 })
    expect(never.decision).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(atOnce.decision).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 1_000 })
    await it.close()
  })
})

test.each(['local', 'background', 'leased', 'central'] as const)(
  'a request that costs much more than the limit never fits: %s',
  async (coordination) => {
    const it = scene()
    const node = it.node({ limit: 10, interval: '1h', coordination }, { alone: coordination === 'local' })
    node.start()
    const queue = await waiting(it, node)
    await it.world.run(1_500)
    const big = queue.acquire('a', { cost: 1_000 })
    await it.world.run(400)
    expect([big.failure, big.error?.retryAfterMs]).toEqual(['never-fits', Number.POSITIVE_INFINITY])
    await it.close()
  },
)

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

test('one that could not go in time is told that it is rejected, also where its bucket has room', async () => {
  const it = await central(1, { limit: 10, algorithm: leakyBucket() })
  const [queue] = it.queues as [Waiting]
  const all = Array.from({ length: 4 }, () => queue.tryAcquire('a', { timeout: 5 }))
  await it.world.run(1_000)
  expect(all.map(({ decision }) => decision?.allowed)).toEqual([true, false, false, false])
  for (const { decision } of all.slice(1)) {
    expect(decision).toMatchObject({ reason: 'limit', cost: 0, delayMs: 0 })
    expect(decision?.retryAfterMs).toBeGreaterThan(5)
  }
  await it.close()
})

test.each([
  { roundTrip: 2, timeout: 0 },
  { roundTrip: 20, timeout: 0 },
  { roundTrip: 20, timeout: 5 },
  { roundTrip: 20, timeout: 30 },
])('those that can not wait for the answers about others are asked for at once: %o', async ({ roundTrip, timeout }) => {
  const it = await central(1, { algorithm: tokenBucket() }, roundTrip)
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 10; i++) queue.acquire('a', { timeout })
  await it.world.run(500)
  expect(queue.went).toHaveLength(10)
  expect(it.asked().length).toBeLessThanOrEqual(2)
  for (let i = 0; i < 40; i++) {
    queue.acquire('a', { timeout })
    await it.world.run(3)
  }
  await it.world.run(500)
  expect(queue.went).toHaveLength(50)
  await it.close()
})
