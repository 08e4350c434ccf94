import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { type Node, type NodeOptions, type Scene, scene } from '../support/nodes.ts'
import { type Outcome, type Waiting, waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

interface Nodes extends Scene {
  readonly nodes: readonly Node[]
  readonly queues: readonly Waiting[]
}

/** Nodes that know of each other, two seconds after they started. */
async function started(count: number, more: Partial<PolicyOptions<never>> = {}, roundTrip = 2, options: NodeOptions = {}): Promise<Nodes> {
  const it = scene()
  it.store.roundTrip = roundTrip
  const policy = { limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }), ...more } as const
  const nodes = Array.from({ length: count }, () => it.node(policy, options))
  for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  return { ...it, nodes, queues }
}

function times(outcomes: readonly Outcome[]): number[] {
  return outcomes
    .filter(({ decision }) => decision?.allowed === true)
    .map(({ at }) => at as number)
    .sort((a, b) => a - b)
}

/** The most that went in any second. */
function mostInASecond(went: readonly number[]): number {
  return Math.max(0, ...went.map((from) => went.filter((at) => at >= from && at < from + 1_000).length))
}

test.each([2, 20])('nodes that wait keep the pace together, and use all of it: a round trip of %i ms', async (roundTrip) => {
  const { world, queues, close } = await started(6, {}, roundTrip)
  for (const queue of queues) for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '20s' })
  await world.runTo(16_000)
  const went = times(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(120)
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + 119 * 100 + roundTrip + 20)
  expect(mostInASecond(went)).toBeLessThanOrEqual(11)
  await close()
})

test('a request asks for its place although nobody waits, unless there is plenty of room', async () => {
  const { world, store, queues, close } = await started(2, { algorithm: tokenBucket({ burst: 12 }) }, 20)
  const [one, other] = queues as [Waiting, Waiting]
  const plenty = [one.acquire('a'), other.acquire('a')]
  await world.run(1)
  expect(plenty.map(({ at }) => at)).toEqual([2_100, 2_100])
  await world.run(2_000)
  const before = store.requests.length
  const many = Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? one : other).acquire('a'))
  await world.run(3_000)
  const went = times(many)
  // Twelve at once, and then ten a second: none of those that nobody has told of goes beyond them.
  for (const [place, at] of went.entries()) expect(at - 4_101).toBeGreaterThanOrEqual(100 * (place - 12) - 1)
  expect(went).toHaveLength(24)
  expect(store.requests.length).toBeGreaterThan(before)
  await close()
})

test('a request to several policies waits for its place at the one that has places, and leaves none behind', async () => {
  const it = scene()
  it.store.roundTrip = 2
  const policies = [
    { name: 'hour', limit: 1_000, interval: 3_600_000 },
    { name: 'pace', limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }) },
  ] as const
  const nodes = [it.node(policies), it.node(policies), it.node(policies)]
  for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  for (const queue of queues) for (let i = 0; i < 4; i++) queue.acquire('a')
  await it.world.run(2_000)
  const went = times(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(12)
  expect(mostInASecond(went)).toBeLessThanOrEqual(11)
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + 1_100 + 22)
  // Nothing is asked for any more, and the bucket is empty.
  const before = it.store.requests.flatMap(({ request }) => request.entries).length
  await it.world.run(5_000)
  expect(it.store.requests.flatMap(({ request }) => request.entries).length - before).toBeLessThanOrEqual(30)
  expect(nodes.map((node) => node.peek('a').parts[1]?.remaining)).toEqual([1, 1, 1])
  await it.close()
})

test('keys that have no place in memory wait without places', async () => {
  const { world, queues, close } = await started(2, {}, 2, { maxKeys: 1 })
  const [one, other] = queues as [Waiting, Waiting]
  for (const key of ['a', 'b', 'c']) for (const queue of [one, other]) for (let i = 0; i < 3; i++) queue.acquire(key, { timeout: '20s' })
  await world.run(8_000)
  expect(times([...one.ended, ...other.ended])).toHaveLength(18)
  await close()
})

test('nodes are served by what waits with them', async () => {
  const { world, queues, close } = await started(4, { limit: 60 })
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

test('the place of one that is aborted goes to the next one of its node', async () => {
  const { world, queues, close } = await started(2)
  const [one, other] = queues as [Waiting, Waiting]
  const controller = new AbortController()
  for (const name of ['first', 'second']) one.acquire('a', { name })
  await world.run(20)
  const aborted = one.acquire('a', { signal: controller.signal })
  const next = one.acquire('a', { name: 'next' })
  const others = [other.acquire('a'), other.acquire('a')]
  await world.run(30)
  controller.abort()
  await world.run(2_000)
  expect(aborted.failure).toBe('aborted')
  const went = times([...one.ended, ...other.ended])
  expect(went).toHaveLength(5)
  // The second goes after a tenth of a second, and then each of the others: none of their places was left out.
  for (const [place, at] of went.entries()) if (place > 1) expect(at - (went[place - 1] as number)).toBeLessThanOrEqual(110)
  expect(Math.max(next.at as number, ...others.map(({ at }) => at as number))).toBeLessThanOrEqual(2_100 + 440)
  await close()
})

test('who waits beyond its time takes nothing from the others', async () => {
  const { world, queues, close } = await started(2)
  const [one, other] = queues as [Waiting, Waiting]
  for (let i = 0; i < 20; i++) {
    one.acquire('a', { timeout: 450 })
    other.acquire('a', { timeout: '20s' })
  }
  await world.run(4_000)
  const went = times([...one.ended, ...other.ended])
  expect(one.ended).toHaveLength(20)
  for (const { at } of one.ended) expect(at as number).toBeLessThanOrEqual(2_100 + 451)
  expect(other.went).toHaveLength(20)
  expect(went.length).toBeGreaterThanOrEqual(22)
  // Reservations of requests that left may be lost to all: a few tenths of a second.
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + (went.length + 3) * 100)
  await close()
})

test('a request that is not waited for leaves the places to those that wait', async () => {
  const { world, nodes, queues, close } = await started(2)
  for (const queue of queues) for (let i = 0; i < 5; i++) queue.acquire('a')
  const [node] = nodes as [Node, Node]
  let allowed = 0
  for (let time = 0; time < 900; time += 10) {
    await world.run(10)
    if (node.check('a').allowed) allowed++
  }
  // Only before the first answer of the store.
  expect(allowed).toBeLessThanOrEqual(1)
  await world.run(1_000)
  expect(queues.flatMap(({ went }) => went)).toHaveLength(10)
  await close()
})

test('while the store is away nodes go on by their share, and by places again when it is back', async () => {
  const { world, store, queues, close } = await started(2)
  for (const queue of queues) for (let i = 0; i < 60; i++) queue.acquire('a', { timeout: '30s' })
  await world.run(1_000)
  store.health = 'hanging'
  await world.run(4_000)
  store.health = 'up'
  await world.run(9_000)
  const went = times(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(120)
  expect(mostInASecond(went.filter((at) => at >= 8_500))).toBeLessThanOrEqual(11)
  expect(mostInASecond(went)).toBeLessThanOrEqual(15)
  await close()
})

test('when answers are lost all go in the end, and hardly more than the pace', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 20, max: 700 }), { minLength: 2, maxLength: 10 }), async (phases) => {
      const { world, store, queues, close } = await started(3)
      store.storeTimeout = 40
      for (const queue of queues) for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '30s' })
      for (const [phase, length] of phases.entries()) {
        store.health = phase % 2 === 0 ? 'mute' : 'up'
        await world.run(length)
      }
      store.health = 'up'
      await world.run(15_000)
      const went = times(queues.flatMap(({ ended }) => ended))
      expect(went).toHaveLength(60)
      // Places of before and what each lets go by its share may come together, and one of each node that has not heard of the others.
      expect(mostInASecond(went)).toBeLessThanOrEqual(2 * 11 + 3)
      await close()
    }),
    { numRuns: 20 },
  )
})

test('a request of another cost gets as many places as it takes', async () => {
  const { world, queues, close } = await started(2, { algorithm: tokenBucket({ burst: 5 }) })
  const [one, other] = queues as [Waiting, Waiting]
  for (let i = 0; i < 6; i++) {
    one.acquire('a', { cost: 5 })
    other.acquire('a', { cost: 0.5 })
  }
  await world.run(4_000)
  expect([one.went.length, other.went.length]).toEqual([6, 6])
  // 33 units at ten a second, five of them at once.
  const last = Math.max(...[...one.ended, ...other.ended].map(({ at }) => at as number))
  expect(last).toBeGreaterThanOrEqual(2_100 + 2_700)
  expect(last).toBeLessThanOrEqual(2_100 + 3_100)
  await close()
})

test('when a key is reset whoever waits goes on', async () => {
  const { world, nodes, queues, close } = await started(2)
  for (const queue of queues) for (let i = 0; i < 10; i++) queue.acquire('a', { timeout: '20s' })
  await world.run(300)
  nodes[0]?.reset('a')
  await world.run(3_000)
  expect(queues.flatMap(({ went }) => went)).toHaveLength(20)
  await close()
})

test('one node alone asks nobody', async () => {
  const { world, store, queues, close } = await started(1)
  const before = store.requests.length
  for (let i = 0; i < 30; i++) queues[0]?.acquire('a')
  await world.run(3_500)
  const went = times(queues[0]?.ended ?? [])
  expect(went.map((at, place) => at - (went[0] as number) - 100 * place).every((late) => Math.abs(late) <= 2)).toBe(true)
  expect(store.requests.length - before).toBeLessThanOrEqual(40)
  await close()
})

test('an answer that is late brings the places all the same, and the pace is used up', async () => {
  const { world, store, queues, close } = await started(2)
  for (const queue of queues) for (let i = 0; i < 40; i++) queue.acquire('a', { timeout: '30s' })
  // Now and then it is long overdue, as from a busy machine.
  for (let time = 0; time < 9_000; time += 500) {
    store.roundTrip = time % 1_000 === 0 ? 90 : 2
    await world.run(500)
  }
  const went = times(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(80)
  expect(mostInASecond(went)).toBeLessThanOrEqual(2 * 11 + 2)
  await close()
})
