import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { EACH_CELL } from '../support/cells.ts'
import { started } from '../support/central.ts'
import { BUCKETS, type CentralNodes, central, endedOf, startsOf } from '../support/central-queues.ts'
import { type Scene, scene } from '../support/nodes.ts'
import { mostInASecond, type Outcome, startTimes, type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

const allowedOf = ({ queues }: CentralNodes): Outcome[] =>
  queues.flatMap(({ ended }) => ended).filter(({ decision }) => decision?.allowed === true)

const LIMIT = 10

const CALLS = 60

const INTERVAL = 1_000

/** Milliseconds by which a start may come later than its decision. */
const TOLERANCE = 1

/** The reasons why a start may come later than its decision, and the part that is late. */
const LATE: Readonly<Record<string, { call?: number; reading?: number; start?: number; code?: 'loaded'; stop?: number }>> = {
  'the calls are made in one loop that takes 400 ms': { call: 2, code: 'loaded' },
  'so are the first calls of a process': { call: 2 },
  'deciding takes long': { reading: 0.04, code: 'loaded' },
  'deciding about the first calls takes long': { reading: 0.04 },
  'each of the first starts takes 20 ms': { start: 20, code: 'loaded' },
  'the process stands still for 700 ms': { stop: 700, code: 'loaded' },
}

/** Cells that decide in this process. A decision of the store is always a part of a round trip old. */
const CELLS = EACH_CELL.filter(
  ({ name, coordination }) => name !== 'concurrency()' && coordination !== 'leased' && coordination !== 'central',
)

/** Lets virtual time pass. Before each millisecond, code may load in real time. */
async function pass(here: Scene, milliseconds: number): Promise<void> {
  const end = here.world.time + milliseconds
  while (here.world.time < end) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(1)
  }
}

/**
 * The most requests that an algorithm allows in one interval, and when intervals begin: at whole multiples, with the first start, or at any
 * moment.
 */
const BOUNDS: Readonly<Record<string, readonly [most: number, begins: 'aligned' | 'first' | 'any']>> = {
  'fixedWindow()': [LIMIT, 'aligned'],
  "fixedWindow({ start: 'first-request' })": [LIMIT, 'first'],
  'slidingWindow()': [LIMIT + 2, 'any'],
  // If units came late in the previous interval, it allows as many again.
  'slidingCounter()': [LIMIT + 8, 'any'],
  'slidingLog()': [LIMIT, 'any'],
  'leakyBucket()': [LIMIT + 1, 'any'],
  'tokenBucket()': [2 * LIMIT + 1, 'any'],
}

/** The most starts in one interval. */
function most(starts: readonly number[], begins: 'aligned' | 'first' | 'any'): number {
  let worst = 0
  let next = 0
  for (const start of starts) {
    if (begins !== 'any' && start < next) continue
    const from = begins === 'aligned' ? Math.floor(start / INTERVAL) * INTERVAL : start
    next = from + INTERVAL - (begins === 'aligned' ? 0 : TOLERANCE)
    worst = Math.max(worst, starts.filter((at) => at >= from && at < next).length)
  }
  return worst
}

describe('a request', () => {
  test('goes at once while there is room, and waits for its turn when there is none', async () => {
    const it = scene()
    const node = it.node(LOCAL)
    const queue = await waiting(it, node)
    const all = Array.from({ length: 5 }, () => queue.acquire('a'))
    await it.world.settle()
    expect(all.map(({ at }) => at)).toEqual([0, 0, undefined, undefined, undefined])
    expect(node.waiting).toBe(3)
    await it.world.run(2_500)
    expect(all.map(({ at }) => at)).toEqual([0, 0, 1_000, 1_000, 2_000])
    expect(queue.went).toEqual(['a0', 'a1', 'a2', 'a3', 'a4'])
    expect(node.waiting).toBe(0)
    await it.close()
  })

  test('goes as soon as a token is there', async () => {
    const it = scene()
    const node = it.node({ limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }), coordination: 'local' })
    const queue = await waiting(it, node)
    const all = Array.from({ length: 30 }, () => queue.acquire('a'))
    await it.world.run(3_000)
    for (const [i, { at }] of all.entries()) expect(Math.abs((at as number) - 100 * i)).toBeLessThanOrEqual(2)
    await it.close()
  })
})

describe('every algorithm lets go what its definition allows, and no more', () => {
  test.each([
    ['slidingLog()', slidingLog()],
    ['slidingWindow()', slidingWindow()],
    ['tokenBucket()', tokenBucket()],
    ['leakyBucket()', leakyBucket()],
  ])('%s', async (_, algorithm) => {
    const it = scene()
    const node = it.node({ limit: 20, interval: 1_000, algorithm, coordination: 'local' })
    const queue = await waiting(it, node)
    for (let i = 0; i < 200; i++) queue.acquire('a')
    await it.world.run(12_000)
    expect(queue.went).toHaveLength(200)
    const times = queue.ended.map(({ at }) => at as number)
    // A bucket allows its burst once in addition.
    for (const [i, at] of times.entries()) {
      const within = times.filter((other) => other >= at && other < at + 1_000).length
      expect(within, `from ${i}`).toBeLessThanOrEqual(algorithm.burst === undefined ? 20 : 40)
    }
    expect(times.at(-1)).toBeLessThanOrEqual(10_500)
    await it.close()
  })
})

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
    // In the background each of the other processes may allow one more before it receives the counts.
    expect(went, `from ${from}`).toBeLessThanOrEqual(coordination === 'background' ? 36 : 30)
  }
  expect(Math.max(...ended.map(({ at }) => at as number))).toBeLessThanOrEqual(8_200)
  await it.close()
})

test.each([1, 3])('leases: %i nodes far away from the store let go all that the limit allows', async (count) => {
  const it = scene()
  it.store.roundTrip = 30
  // The store needs several round trips to grant, which is more than its timeout.
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

test.each([2, 20])('nodes that wait keep the pace together, and use all of it: a round trip of %i ms', async (roundTrip) => {
  const { world, queues, close } = await backgroundNodes(6, {}, roundTrip)
  for (const queue of queues) for (let i = 0; i < 20; i++) queue.acquire('a', { timeout: '20s' })
  await world.runTo(16_000)
  const went = startTimes(queues.flatMap(({ ended }) => ended))
  expect(went).toHaveLength(120)
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + 119 * 100 + roundTrip + 20)
  expect(mostInASecond(went)).toBeLessThanOrEqual(11)
  await close()
})

test('a request asks for its place although nobody waits, unless there is plenty of room', async () => {
  const { world, store, queues, close } = await backgroundNodes(2, { algorithm: tokenBucket({ burst: 12 }) }, 20)
  const [one, other] = queues as [Waiting, Waiting]
  const plenty = [one.acquire('a'), other.acquire('a')]
  await world.run(1)
  expect(plenty.map(({ at }) => at)).toEqual([2_100, 2_100])
  await world.run(2_000)
  const before = store.requests.length
  const many = Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? one : other).acquire('a'))
  await world.run(3_000)
  const went = startTimes(many)
  // Twelve requests are allowed at once, and then ten per second. Unsent requests don't exceed that.
  for (const [place, at] of went.entries()) expect(at - 4_101).toBeGreaterThanOrEqual(100 * (place - 12) - 1)
  expect(went).toHaveLength(24)
  expect(store.requests.length).toBeGreaterThan(before)
  await close()
})

test('a request of another cost gets as many places as it takes', async () => {
  const { world, queues, close } = await backgroundNodes(2, { algorithm: tokenBucket({ burst: 5 }) })
  const [one, other] = queues as [Waiting, Waiting]
  for (let i = 0; i < 6; i++) {
    one.acquire('a', { cost: 5 })
    other.acquire('a', { cost: 0.5 })
  }
  await world.run(4_000)
  expect([one.went.length, other.went.length]).toEqual([6, 6])
  // There are 33 units at ten per second, five of them at once.
  const last = Math.max(...[...one.ended, ...other.ended].map(({ at }) => at as number))
  expect(last).toBeGreaterThanOrEqual(2_100 + 2_700)
  expect(last).toBeLessThanOrEqual(2_100 + 3_100)
  await close()
})

test.each(BUCKETS)('where requests have to go in time each does, and no place stays unused: $name', async ({ algorithm, atOnce }) => {
  const it = await central(3, { algorithm })
  // For ten seconds, twice as many requests come as are allowed.
  for (let at = 0; at < 10_000; at += 5) {
    it.queues[at % 3]?.acquire('a', { timeout: 500 })
    await it.world.run(5)
  }
  await it.world.run(1_000)
  const all = endedOf(it)
  expect(all).toHaveLength(2_000)
  expect(all.every(({ decision, failure }) => decision?.allowed === true || failure === 'timeout')).toBe(true)
  const went = startsOf(it)
  expect(went.length).toBeGreaterThanOrEqual(1_000 + 40)
  expect(went.length).toBeLessThanOrEqual(1_000 + 50 + atOnce)
  expect(mostInASecond(went)).toBeLessThanOrEqual(102 + atOnce)
  await it.close()
})

test.each([2, 40])('requests of different costs use the whole pace, at a round trip of %i ms', async (roundTrip) => {
  const it = await central(1, { limit: 1_000, algorithm: tokenBucket({ burst: 5 }) }, roundTrip)
  const [queue] = it.queues as [Waiting]
  const costs = new Map<Outcome, number>()
  let made = 0
  // For two seconds, three times as many units come as are allowed.
  for (let at = 0; at < 2_000; at += 5) {
    for (let i = 0; i < 10; i++) {
      const cost = 1 + (made++ % 2)
      costs.set(queue.acquire('a', { timeout: '500ms', cost }), cost)
    }
    await it.world.run(5)
  }
  const used = allowedOf(it).reduce((sum, outcome) => sum + (costs.get(outcome) as number), 0)
  // The first request is sent alone, and others when it is answered.
  expect(used).toBeGreaterThanOrEqual(0.97 * (2_000 - 2 * roundTrip))
  expect(used).toBeLessThanOrEqual(2_000 + 10)
  expect(it.asked().length).toBeLessThanOrEqual(made)
  await it.close()
})

for (const [title, late] of Object.entries(LATE)) {
  test.each(CELLS)(`no interval has more starts than the limit allows although ${title}: $name, $coordination`, async (cell) => {
    const { algorithm, name, coordination } = cell
    const [bound, begins] = BOUNDS[name] as (typeof BOUNDS)[string]
    const here = scene()
    const policy = { limit: LIMIT, interval: INTERVAL, algorithm, coordination } as unknown as AnyPolicyOptions
    const node = here.node(policy, { alone: coordination === 'local' }).start()
    if (late.code === 'loaded') await waiting(here, node as never)
    await here.world.run(2_700)
    const clock = node.clock as typeof node.clock & { monotonic: () => number }
    const read = clock.monotonic.bind(clock)
    clock.monotonic = () => {
      here.world.stall(late.reading ?? 0)
      return read()
    }
    const starts: number[] = []
    for (let i = 0; i < CALLS; i++) {
      void node.schedule('a', () => {
        starts.push(here.world.time)
        if (starts.length <= LIMIT) here.world.stall(late.start ?? 0)
      })
      here.world.stall(late.call ?? 0)
    }
    await pass(here, 50)
    await here.world.run(1_300)
    here.world.stall(late.stop ?? 0)
    await here.world.run(7_000)
    expect(starts).toHaveLength(CALLS)
    expect(most(starts, begins)).toBeLessThanOrEqual(bound)
    await here.close()
  })
}
