import { expect, test } from 'vitest'
import { CENTRAL, started } from '../support/central.ts'
import { scene } from '../support/nodes.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

test.each(['background', 'leased', 'central'] as const)('%s: three nodes together let go what the limit allows', async (coordination) => {
  const it = scene()
  it.store.roundTrip = 2
  const policy = { limit: 30, interval: 1_000, coordination }
  const nodes = [it.node(policy), it.node(policy), it.node(policy)]
  if (coordination === 'central') await started(it, ...nodes)
  else for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  for (const queue of queues) for (let i = 0; i < 60; i++) queue.acquire('a', { timeout: '20s' })
  await it.world.runTo(12_000)
  const ended = queues.flatMap(({ ended }) => ended)
  expect(ended.filter(({ failure }) => failure !== undefined)).toEqual([])
  expect(ended).toHaveLength(180)
  for (let from = 2_000; from < 12_000; from += 1_000) {
    const went = ended.filter(({ at }) => (at as number) >= from && (at as number) < from + 1_000).length
    // In the background each of the others may let one more go before it hears.
    expect(went, `from ${from}`).toBeLessThanOrEqual(coordination === 'background' ? 36 : 30)
  }
  expect(Math.max(...ended.map(({ at }) => at as number))).toBeLessThanOrEqual(8_200)
  await it.close()
})

test.each([1, 3])('leases: %i nodes far away from the store let go all that the limit allows', async (count) => {
  const it = scene()
  it.store.roundTrip = 30
  // Several round trips are more than the store is given to grant.
  const policy = { limit: 100, interval: 1_000, coordination: 'leased', storeTimeout: 50 } as const
  const nodes = Array.from({ length: count }, () => it.node(policy))
  for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  for (let i = 0; i < 600; i++) queues[i % count]?.acquire('a', { timeout: '20s' })
  await it.world.runTo(9_000)
  const went = queues.flatMap(({ ended }) => ended).map(({ at }) => Math.floor((at as number) / 1_000))
  const each = [2, 3, 4, 5, 6, 7].map((second) => went.filter((one) => one === second).length)
  expect(Math.max(...each)).toBeLessThanOrEqual(100)
  expect(each.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(0.98 * 600)
  await it.close()
})

test.each(['leased', 'background', 'central'] as const)(
  '%s: nodes with queues of different length are served by what waits with them',
  async (coordination) => {
    const it = scene()
    it.store.roundTrip = 1
    const policy = { limit: 60, interval: 1_000, coordination }
    const parts = [1, 2, 3, 6]
    const nodes = parts.map(() => it.node(policy))
    if (coordination === 'central') await started(it, ...nodes)
    else for (const node of nodes) node.start()
    const queues: Waiting[] = []
    for (const node of nodes) queues.push(await waiting(it, node))
    await it.world.runTo(2_100)
    for (const [node, queue] of queues.entries())
      for (let i = 0; i < 120 * (parts[node] as number); i++) queue.acquire('a', { timeout: '30s' })
    await it.world.runTo(16_900)
    const served = queues.map(
      ({ ended }) => ended.filter(({ decision, at }) => decision?.allowed === true && (at as number) >= 5_000).length,
    )
    expect(served.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(0.98 * 12 * 60)
    for (const [node, count] of served.entries()) {
      const part = (12 * 60 * (parts[node] as number)) / 12
      expect(count / part, `${served}`).toBeGreaterThan(0.8)
      expect(count / part, `${served}`).toBeLessThan(1.2)
    }
    await it.close()
  },
)

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

test('central: one that is aborted while the store is asked takes nothing', async () => {
  const it = scene()
  it.store.roundTrip = 20
  const node = it.node({ ...CENTRAL, limit: 1 })
  await started(it, node)
  const queue = await waiting(it, node)
  await it.world.runTo(20_010)
  const controller = new AbortController()
  const aborted = queue.acquire('a', { signal: controller.signal })
  await it.world.run(5)
  controller.abort()
  await it.world.run(200)
  expect(aborted.failure).toBe('aborted')
  const next = queue.acquire('a')
  await it.world.run(200)
  expect(next.decision?.allowed).toBe(true)
  await it.close()
})

test('central: while the store is away its share goes, and nobody waits for ever', async () => {
  const it = scene()
  const nodes = [it.node(CENTRAL), it.node(CENTRAL)]
  await started(it, ...nodes)
  const [queue] = await Promise.all(nodes.map((node) => waiting(it, node)))
  await it.world.runTo(20_010)
  it.store.health = 'hanging'
  const all = Array.from({ length: 12 }, () => queue?.acquire('a', { timeout: '25s' }))
  await it.world.run(30_000)
  const went = all.filter((one) => one?.decision?.allowed === true)
  expect(went.length).toBeGreaterThanOrEqual(10)
  expect(all.every((one) => one?.at !== undefined)).toBe(true)
  await it.close()
})
