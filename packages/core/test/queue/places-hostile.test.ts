import { expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { started } from '../support/central.ts'
import { type CentralNodes, central } from '../support/central-queues.ts'
import { scene } from '../support/nodes.ts'
import { type Outcome, type Waiting, waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

const wentOf = ({ queues }: CentralNodes): Outcome[] =>
  queues.flatMap(({ ended }) => ended).filter(({ decision }) => decision?.allowed === true)

test.each([2, 40])('requests of different costs use the whole pace, at a round trip of %i ms', async (roundTrip) => {
  const it = await central(1, { limit: 1_000, algorithm: tokenBucket({ burst: 5 }) }, roundTrip)
  const [queue] = it.queues as [Waiting]
  const costs = new Map<Outcome, number>()
  let made = 0
  // Three times as much as may go, for two seconds.
  for (let at = 0; at < 2_000; at += 5) {
    for (let i = 0; i < 10; i++) {
      const cost = 1 + (made++ % 2)
      costs.set(queue.acquire('a', { timeout: '500ms', cost }), cost)
    }
    await it.world.run(5)
  }
  const used = wentOf(it).reduce((sum, outcome) => sum + (costs.get(outcome) as number), 0)
  // The first one asks alone, and others when that is answered.
  expect(used).toBeGreaterThanOrEqual(0.97 * (2_000 - 2 * roundTrip))
  expect(used).toBeLessThanOrEqual(2_000 + 10)
  expect(it.asked().length).toBeLessThanOrEqual(made)
  await it.close()
})

test('places that another node gives back are heard of within a second', async () => {
  const it = await central(2, { limit: 10, algorithm: leakyBucket({ burst: 0 }) })
  const [queue, other] = it.queues as [Waiting, Waiting]
  const leaving = Array.from({ length: 800 }, () => new AbortController())
  for (const { signal } of leaving) other.acquire('a', { timeout: '30s', signal })
  await it.world.run(50)
  const far = queue.acquire('a', { timeout: 500 })
  await it.world.run(50)
  expect(far.failure).toBe('timeout')
  for (const controller of leaving) controller.abort()
  await it.world.run(1_000)
  const next = queue.acquire('a', { timeout: 500 })
  await it.world.run(500)
  expect(next.decision?.allowed).toBe(true)
  await it.close()
})

test.each([
  { failMode: 'share', least: 50 },
  { failMode: 'open', least: 50 },
  { failMode: 'closed', least: 0 },
] as const)(
  'of a key that the store can not read each request is decided about, and the store is not asked again and again: $failMode',
  async ({ failMode, least }) => {
    const it = await central(1, { limit: 10, algorithm: tokenBucket({ burst: 5 }), failMode })
    const [queue] = it.queues as [Waiting]
    it.store.unreadable.add('a')
    for (let i = 0; i < 100; i++) queue.acquire('a', { timeout: '5s' })
    await it.world.run(6_000)
    expect(queue.ended).toHaveLength(100)
    expect(queue.went.length).toBeGreaterThanOrEqual(least)
    expect(it.asked().length).toBeLessThanOrEqual(300)
    await it.close()
  },
)

test('of those that were asked for together as many go without the store as its share allows, and these count', async () => {
  const it = await central(3, { limit: 100, interval: 10_000, algorithm: tokenBucket() })
  const leaving = Array.from({ length: 900 }, () => new AbortController())
  for (const [i, { signal }] of leaving.entries()) it.queues[i % 3]?.acquire('a', { timeout: '30s', signal })
  const begun = it.world.time
  // The first ones are answered.
  await it.world.run(1)
  it.store.health = 'hanging'
  await it.world.run(200)
  expect(it.asked().slice(3)).toEqual(expect.arrayContaining([38, 38, 38]))
  for (const one of leaving) one.abort()
  const went = it.queues.map((queue) => queue.went.length)
  for (const one of went) expect(one).toBeLessThanOrEqual(35)
  for (const one of went) expect(one).toBeGreaterThanOrEqual(30)
  it.store.health = 'up'
  await it.world.run(1_500)
  const usage = it.nodes[0]?.usage('a')
  await it.world.run(100)
  const drained = (it.world.time - begun) / 100
  const all = went.reduce((sum, one) => sum + one, 0)
  const used = (await usage)?.[0]?.used as number
  // Units that the store receives late drain from then on.
  expect(used).toBeGreaterThanOrEqual(all - drained - 1)
  // It is told at the next probe, which is 200 ms after the last one.
  expect(used).toBeLessThanOrEqual(all - drained + 12)
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

test('who closes and rejects all waits for none of those that were being asked for', async () => {
  const it = scene()
  it.store.roundTrip = 40
  const policy = { limit: 1, interval: 10_000, coordination: 'central', algorithm: leakyBucket({ burst: 0 }) } as const
  const node = it.node(policy, { queue: { onClose: 'reject' } })
  await started(it, node)
  const queue = await waiting(it, node)
  await it.world.runTo(20_000)
  for (let i = 0; i < 3; i++) queue.acquire('a', { timeout: '30s' })
  await it.world.run(50)
  const begun = it.world.time
  let closed: number | undefined
  void node.close().then(() => (closed = it.world.time))
  await it.world.run(30_000)
  expect(closed).toBeLessThanOrEqual(begun + 100)
  expect(queue.ended.map(({ failure }) => failure)).toEqual([undefined, 'closed', 'closed'])
})

test('when all leave that have places, those that wait behind them move up', async () => {
  const it = await central(1, { limit: 10, algorithm: leakyBucket({ burst: 0 }) })
  const [queue] = it.queues as [Waiting]
  const leaving = Array.from({ length: 11 }, () => new AbortController())
  for (const { signal } of leaving) queue.acquire('a', { timeout: '30s', signal })
  const behind = Array.from({ length: 70 }, () => queue.acquire('a', { timeout: '30s' }))
  await it.world.run(50)
  for (const one of leaving) one.abort()
  await it.world.run(8_000)
  expect(behind[0]?.at).toBeLessThanOrEqual(20_150)
  expect(behind.at(-1)?.at).toBeLessThanOrEqual(20_150 + 69 * 100 + 20)
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

test('requests take the places of their node in their order, also when another one gives some back', async () => {
  const it = await central(2, { limit: 10, algorithm: leakyBucket({ burst: 0 }) })
  const [queue, other] = it.queues as [Waiting, Waiting]
  const leaving = Array.from({ length: 24 }, () => new AbortController())
  for (const { signal } of leaving) other.acquire('a', { timeout: '30s', signal })
  await it.world.run(20)
  for (let i = 0; i < 40; i++) queue.acquire('a', { name: String(i), timeout: '30s' })
  await it.world.run(300)
  for (const one of leaving) one.abort()
  await it.world.run(10_000)
  expect(queue.went).toEqual(Array.from({ length: 40 }, (_, i) => String(i)))
  await it.close()
})
