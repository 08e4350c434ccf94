import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { central } from '../support/central-queues.ts'
import { type Node, offer, scene } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'
import { type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

/** Milliseconds after the request before. */
const after = (most: number) => fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: most }))

const STRICT_PACE = { name: 'pace', limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 0 }), coordination: 'central' } as const

const LONG_WINDOW = { name: 'window', limit: 1_000, interval: 60_000, coordination: 'central' } as const

describe('a request', () => {
  test('with a large cost is not overtaken by small ones of its key', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 4 })
    const queue = await waiting(it, node)
    queue.acquire('a', { name: 'three', cost: 3 })
    queue.acquire('a', { name: 'four', cost: 4 })
    queue.acquire('a', { name: 'one', cost: 1 })
    await it.world.run(3_000)
    expect(queue.ended.map(({ name, at }) => [name, at])).toEqual([
      ['three', 0],
      ['four', 1_000],
      ['one', 2_000],
    ])
    await it.close()
  })

  test.each([
    { what: 'uses the time of one of lower priority', limit: 4, priority: 'low', timeout: 126, went: [0, 125, 375, undefined] },
    { what: 'moves up after another one was cancelled', limit: 8, priority: 'default', timeout: 4_000, went: [0, undefined, 250, 375] },
  ] as const)('with a small cost goes after an earlier one with a large cost if it $what', async ({ limit, priority, timeout, went }) => {
    const it = scene()
    const node = it.node({ limit, interval: 125 * limit, algorithm: leakyBucket(), coordination: 'local' })
    const queue = await waiting(it, node)
    const controller = new AbortController()
    const made = [
      queue.acquire('a'),
      queue.acquire('a', { priority, timeout, signal: controller.signal }),
      queue.acquire('a', { cost: 2, timeout: 375 }),
    ]
    await it.world.run(1)
    made.push(queue.acquire('a', { timeout: priority === 'low' ? 124 : 4_000 }))
    await it.world.run(1)
    if (priority === 'default') controller.abort()
    await it.world.run(2_000)
    expect(made.map(({ at, decision }) => (decision === undefined ? undefined : at))).toEqual(went)
    await it.close()
  })
})

test('keys that a policy counts together take turns', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, key: 'all', limit: 1, interval: 100 })
  const queue = await waiting(it, node)
  offer(node, 'x', 1)
  for (let i = 0; i < 6; i++) queue.acquire('greedy', { name: `g${i}` })
  for (const key of ['b', 'c']) for (let i = 0; i < 2; i++) queue.acquire(key, { name: `${key}${i}` })
  await it.world.run(1_100)
  expect(queue.went).toEqual(['g0', 'b0', 'c0', 'g1', 'b1', 'c1', 'g2', 'g3', 'g4', 'g5'])
  await it.close()
})

test('a request that is not waited for leaves the places to those that wait', async () => {
  const { world, nodes, queues, close } = await backgroundNodes(2)
  for (const queue of queues) for (let i = 0; i < 5; i++) queue.acquire('a')
  const [node] = nodes as [Node, Node]
  let allowed = 0
  for (let time = 0; time < 900; time += 10) {
    await world.run(10)
    if (node.check('a').allowed) allowed++
  }
  // A request is allowed only before the first answer of the store.
  expect(allowed).toBeLessThanOrEqual(1)
  await world.run(1_000)
  expect(queues.flatMap(({ went }) => went)).toHaveLength(10)
  await close()
})

test('keys that a policy counts together take turns, and are asked for together', async () => {
  const it = await central(1, { key: 'all', algorithm: leakyBucket({ burst: 0 }) })
  const [queue] = it.queues as [Waiting]
  for (let i = 0; i < 60; i++) queue.acquire('busy', { name: 'busy' })
  for (let i = 0; i < 5; i++) queue.acquire('quiet', { name: 'quiet' })
  await it.world.run(250)
  expect(queue.went.slice(0, 20).filter((name) => name === 'quiet')).toHaveLength(5)
  await it.world.run(1_000)
  expect(queue.went).toHaveLength(65)
  expect(it.asked().length).toBeLessThanOrEqual(20)
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

test('requests that want the same go in their order, whoever gives places back, and when', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        limit: fc.constantFrom(10, 100),
        burst: fc.constantFrom(0, 5),
        roundTrip: fc.constantFrom(2, 10, 40),
        between: fc.integer({ min: 0, max: 50 }),
        arrivals: fc.array(after(20), { minLength: 20, maxLength: 60 }),
        leave: fc.integer({ min: 0, max: 400 }),
        leaving: fc.array(after(30), { minLength: 10, maxLength: 40 }),
      }),
      async ({ limit, burst, roundTrip, between, arrivals, leave, leaving }) => {
        const it = await central(2, { limit, algorithm: leakyBucket({ burst }) }, roundTrip)
        const [queue, other] = it.queues as [Waiting, Waiting]
        const clients = leaving.map(() => new AbortController())
        for (const { signal } of clients) other.acquire('a', { timeout: '30s', signal })
        await it.world.run(between)
        for (const [i, time] of arrivals.entries()) {
          await it.world.run(time)
          queue.acquire('a', { name: String(i), timeout: '30s' })
        }
        await it.world.run(leave)
        for (const [i, time] of leaving.entries()) {
          await it.world.run(time)
          clients[i]?.abort()
        }
        await it.world.run(10_000)
        expect(queue.went).toEqual(arrivals.map((_, i) => String(i)))
        await it.close()
      },
    ),
    { numRuns: 60 },
  )
})

describe('who came first goes first', () => {
  test.each([
    [20, 40],
    [20, 20],
    [2, 20],
    [20, 10],
  ])('where a window begins while it is asked about: %i ms, %i', async (roundTrip, limit) => {
    const it = await central(
      1,
      [
        { ...STRICT_PACE, limit: 400 },
        { ...LONG_WINDOW, limit, interval: 100 },
      ],
      roundTrip,
    )
    const [queue] = it.queues as [Waiting]
    for (let i = 0; i < 300; i++) queue.acquire('a', { name: String(i) })
    await it.world.run(20_000)
    expect(queue.went).toEqual(Array.from({ length: 300 }, (_, i) => String(i)))
    await it.close()
  })

  test.each([1, 5, 6, 10, 11])('where questions are answered in another order: seed %i', async (seed) => {
    const chance = new Chance(seed)
    const windows = [
      { name: 'half', limit: 20, interval: 500 },
      { name: 'tenth', limit: 10, interval: 100 },
    ]
    const it = await central(3, windows, chance.pick(2, 20))
    let number = 0
    for (let at = 0; at < 600; at += 10) {
      for (let left = chance.pick(0, 1, 2, 3); left > 0; left--)
        it.queues[Math.floor(chance.random() * 3)]?.acquire('a', { name: String(number++) })
      await it.world.run(10)
    }
    await it.world.run(15_000)
    expect(it.queues.flatMap(({ went }) => went)).toHaveLength(number)
    for (const { went } of it.queues) expect(went).toEqual(went.toSorted((a, b) => Number(a) - Number(b)))
    await it.close()
  })
})
