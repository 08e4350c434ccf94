import { seeds } from '@weir/tooling/seed'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { leakyBucket } from '../../src/index.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { ask, CENTRAL, started } from '../support/central.ts'
import { central, startsOf } from '../support/central-queues.ts'
import { type Node, scene } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'
import { mostInASecond, startTimes, type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const STRICT_PACE = { name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 0 }), coordination: 'central' } as const

const SHARED_PACE = { ...STRICT_PACE, key: 'all' } as object

const LONG_WINDOW = { name: 'window', limit: 1_000, interval: 60_000, coordination: 'central' } as const

type Policy = Partial<PolicyOptions<never>>

const SECOND: Policy = { name: 'second', limit: 100, interval: 1_000 }

const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

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

test('while the store is away nodes go on by their share, and by places again when it is back', async () => {
  const { world, store, queues, close } = await backgroundNodes(2)
  for (const queue of queues) for (let i = 0; i < 60; i++) queue.acquire('a', { timeout: '30s' })
  await world.run(1_000)
  store.health = 'hanging'
  await world.run(4_000)
  store.health = 'up'
  await world.run(9_000)
  const went = startTimes(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(120)
  expect(mostInASecond(went.filter((at) => at >= 8_500))).toBeLessThanOrEqual(11)
  expect(mostInASecond(went)).toBeLessThanOrEqual(15)
  await close()
})

test('when answers are lost all go in the end, and hardly more than the pace', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 20, max: 700 }), { minLength: 2, maxLength: 10 }), async (phases) => {
      const { world, store, queues, close } = await backgroundNodes(3)
      store.storeTimeout = 40
      for (const queue of queues) for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '30s' })
      for (const [phase, length] of phases.entries()) {
        store.health = phase % 2 === 0 ? 'mute' : 'up'
        await world.run(length)
      }
      store.health = 'up'
      await world.run(15_000)
      const went = startTimes(queues.flatMap(({ ended }) => ended))
      expect(went).toHaveLength(60)
      // Earlier reservations and requests allowed by share may come together, plus a request of each process that has not received the
      // others' counts.
      expect(mostInASecond(went)).toBeLessThanOrEqual(2 * 11 + 3)
      await close()
    }),
    { numRuns: 20 },
  )
})

test('an answer that is late brings the places all the same, and the pace is used up', async () => {
  const { world, store, queues, close } = await backgroundNodes(2)
  for (const queue of queues) for (let i = 0; i < 40; i++) queue.acquire('a', { timeout: '30s' })
  // Now and then the reply is long overdue, as on a busy machine.
  for (let time = 0; time < 9_000; time += 500) {
    store.roundTrip = time % 1_000 === 0 ? 90 : 2
    await world.run(500)
  }
  const went = startTimes(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(80)
  expect(mostInASecond(went)).toBeLessThanOrEqual(2 * 11 + 2)
  await close()
})

test.each(['share', 'closed', 'open'] as const)(
  'after a lost answer the store counts those that went, and no others: %s',
  async (failMode) => {
    const it = await central(1, { limit: 60, interval: 60_000, failMode }, 20)
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
    // The first few requests are sent one by one, and the others when these are answered.
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

test.each(['share', 'closed', 'open'] as const)(
  'after a lost answer the store counts those that went, and no others: %s',
  async (failMode) => {
    const it = await central(1, { limit: 40, interval: 3_600_000, algorithm: tokenBucket(), failMode }, 20)
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
    await it.world.run(10)
    it.store.health = 'mute'
    await it.world.run(500)
    it.store.health = 'up'
    await it.world.run(4_000)
    expect(queue.ended).toHaveLength(30)
    const usage = it.nodes[0]?.usage('a')
    await it.world.run(100)
    // A bucket drains a little meanwhile.
    expect((await usage)?.[0]?.used).toBeGreaterThan(startsOf(it).length - 0.1)
    expect((await usage)?.[0]?.used).toBeLessThanOrEqual(startsOf(it).length)
    await it.close()
  },
)

test('what is given back while the store is away comes back as it was counted: for each node', async () => {
  const it = await central(3, { limit: 30, interval: 3_600_000, algorithm: tokenBucket() })
  it.store.health = 'rejecting'
  await it.world.run(2_000)
  const [node] = it.nodes
  const [decision] = await ask(it, node as Node, 'a', 1)
  expect(decision?.allowed).toBe(true)
  expect(node?.peek('a').remaining).toBeCloseTo(27, 1)
  if (decision !== undefined) node?.refund(decision)
  expect(node?.peek('a').remaining).toBeCloseTo(30, 1)
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
  // The store answers the first requests.
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
  // The units are reported at the next probe, which is 200 ms after the last one.
  expect(used).toBeLessThanOrEqual(all - drained + 12)
  await it.close()
})

test.each((['rejecting', 'mute'] as const).flatMap((health) => seeds(15).map((seed) => ({ health, seed }))))(
  'however often the store comes and goes, it counts what went, and no more than the limit goes: $health, seed $seed',
  async ({ health, seed }) => {
    const chance = new Chance(seed)
    const limit = chance.pick(60, 10_000)
    const it = await central(1, { limit, interval: 3_600_000 }, chance.pick(0, 2, 20))
    it.store.storeTimeout = 100
    const [queue] = it.queues as [Waiting]
    const [node] = it.nodes as [Node]
    for (const end = it.world.time + 2_500; it.world.time < end; ) {
      if (chance.of(0.03)) it.store.health = it.store.health === 'up' ? health : 'up'
      for (let left = chance.pick(0, 0, 1, 2); left > 0; left--) queue.acquire('a', { timeout: '200ms' })
      await it.world.run(chance.pick(1, 3, 10, 40))
    }
    it.store.health = 'up'
    await it.world.run(6_000)
    expect(queue.went.length).toBeLessThanOrEqual(limit)
    const usage = node.usage('a')
    await it.world.run(200)
    expect((await usage)[0]?.used).toBe(queue.went.length)
    await it.close()
  },
)

test.each([
  [1, 5_000],
  [50, 5_000],
  [50, 100],
])('a key that the store can not read for one of the policies: few questions, and all end in time: %i requests', async (count, limit) => {
  const it = await central(1, [
    { ...SHARED_PACE, limit },
    { ...LONG_WINDOW, limit: 100, interval: 10_000, failMode: 'closed' },
  ])
  const [queue] = it.queues as [Waiting]
  it.store.unreadable.add('a')
  for (let i = 0; i < count; i++) queue.acquire('a', { timeout: '1s' })
  await it.world.run(8_000)
  expect(queue.ended).toHaveLength(count)
  expect(it.nodes[0]?.waiting).toBe(0)
  for (const { at } of queue.ended) expect((at as number) - 20_000).toBeLessThanOrEqual(1_100)
  expect(it.asked().length).toBeLessThanOrEqual(500)
  await it.close()
})

describe('requests that several policies count are asked for together', () => {
  test.each(['share', 'closed', 'open'] as const)(
    'after a lost answer the store counts those that went, and no others: %s',
    async (failMode) => {
      const it = await central(
        1,
        [
          { ...SECOND, limit: 60, interval: 60_000, failMode },
          { ...LONG, interval: 60_000, failMode },
        ],
        20,
      )
      const [queue] = it.queues as [Waiting]
      for (let i = 0; i < 30; i++) queue.acquire('a', { timeout: '2s' })
      await it.world.run(10)
      it.store.health = 'mute'
      await it.world.run(15)
      expect(Math.max(...it.asked())).toBeGreaterThan(1)
      await it.world.run(500)
      it.store.health = 'up'
      await it.world.run(4_000)
      const went = queue.went.length
      expect(queue.ended).toHaveLength(30)
      const used = it.nodes[0]?.usage('a')
      await it.world.run(100)
      expect((await used)?.map((one) => one.used)).toEqual([went, went])
      await it.close()
    },
  )
})

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test.each(['share', 'open', 'closed'] as const)('without the store it goes on by the choice of each policy: %s', async (failMode) => {
    const it = await central(
      1,
      [
        { ...PACE, failMode },
        { ...LONG, limit: 50, interval: 60_000, failMode },
      ],
      20,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 80; i++) queue.acquire('a', { timeout: '2s' })
    await it.world.run(200)
    it.store.health = 'mute'
    await it.world.run(4_000)
    expect(queue.ended).toHaveLength(80)
    const went = queue.went.length
    if (failMode === 'closed') expect(went).toBeLessThanOrEqual(25)
    else expect(went).toBe(failMode === 'share' ? 50 : 80)
    await it.close()
  })
})
