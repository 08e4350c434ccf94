import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { AnyPolicyOptions, PolicyOptions } from '../../src/decide/policy.ts'
import { limitedFetch } from '../../src/index.ts'
import { Schedule } from '../../src/queue/schedule.ts'
import { backgroundNodes } from '../support/background-queues.ts'
import { EACH_CELL } from '../support/cells.ts'
import { CENTRAL, started } from '../support/central.ts'
import { central, startsOf } from '../support/central-queues.ts'
import { type Node, offer, type Scene, scene, warnings } from '../support/nodes.ts'
import { startTimes, type Waiting, waiting } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

type Policy = Partial<PolicyOptions<never>>

const SECOND: Policy = { name: 'second', limit: 100, interval: 1_000 }

const LONG: Policy = { name: 'long', limit: 300, interval: 4_000 }

const PACE: Policy = { name: 'pace', limit: 100, interval: 1_000, algorithm: leakyBucket() }

const MANY = 400

/** Events that end all requests with reservations. */
const ENDS = {
  'are aborted by one signal': {},
  'are rejected as the throttler closes': { onClose: 'reject' },
} as const

const CALLS = 40

/** Lets virtual time pass, and code load in real time, until the condition is true. */
async function until(here: Scene, isSo: () => boolean): Promise<void> {
  // A busy machine may need many turns to load code.
  const deadline = performance.now() + 20_000
  while (!isSo() && performance.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(5)
  }
  expect(isSo()).toBe(true)
}

/** All calls that wait with a signal of the user. */
const WAITS: Readonly<Record<string, (node: Node, signal: AbortSignal) => Promise<unknown>>> = {
  acquire: (node, signal) => node.acquire('a', { signal }),
  schedule: (node, signal) => node.schedule('a', () => {}, { signal }),
  wrap: (node, signal) => node.wrap(() => {}, { key: 'a', signal })(),
  limitedFetch: (node, signal) => limitedFetch(node, { key: 'a', fetch: async () => new Response() })('http://a', { signal }),
  hold: (node, signal) => node.waitFor(node.check('a'), signal),
}

const PACED = { name: 'paced', limit: 50, interval: 1_000, algorithm: leakyBucket(), coordination: 'local' } as const

describe('a request', () => {
  test('waits for the pace of a leaky bucket, and gives its place back when it is aborted', async () => {
    const it = scene()
    const node = it.node({ limit: 10, interval: 1_000, algorithm: leakyBucket({ burst: 3 }), coordination: 'local' })
    const queue = await waiting(it, node)
    const controller = new AbortController()
    const all = [0, 1, 2, 3, 4, 5].map((i) => queue.acquire('a', i === 3 ? { signal: controller.signal } : {}))
    await it.world.run(150)
    controller.abort()
    await it.world.run(1_000)
    expect(all.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, 'aborted', undefined, undefined])
    const went = all.filter(({ decision }) => decision?.allowed).map(({ at }) => at as number)
    // The unit is free again, so the requests behind are not later because of it.
    expect(went[0]).toBe(0)
    for (let i = 1; i < went.length; i++) expect((went[i] as number) - (went[i - 1] as number)).toBeGreaterThanOrEqual(98)
    expect(went.at(-1)).toBeLessThanOrEqual(502)
    await it.close()
  })

  test('starts no cooldown while it waits', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, cooldown: 60_000 })
    const queue = await waiting(it, node)
    for (let i = 0; i < 6; i++) queue.acquire('a')
    await it.world.run(2_100)
    expect(queue.went).toHaveLength(6)
    await it.close()
  })
})

describe('a request that can not go in time', () => {
  test('leaves when its time is over, and takes nothing', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    offer(node, 'a', 1)
    const low = queue.acquire('a', { timeout: 1_500, priority: 'low' })
    queue.acquire('a', { name: 'high', timeout: 5_000 })
    queue.acquire('a', { name: 'next', timeout: 5_000 })
    await it.world.run(4_000)
    expect([low.failure, low.at]).toEqual(['timeout', 1_500])
    expect(queue.went).toEqual(['high', 'next'])
    await it.close()
  })

  test('leaves at once when it is aborted; the signal is the cause', async () => {
    const it = scene()
    const node = it.node({ ...LOCAL, limit: 1 })
    const queue = await waiting(it, node)
    const controller = new AbortController()
    offer(node, 'a', 1)
    const aborted = queue.acquire('a', { signal: controller.signal })
    const next = queue.acquire('a')
    await it.world.run(500)
    controller.abort('changed my mind')
    await it.world.run(600)
    expect([aborted.failure, aborted.at, aborted.error?.cause]).toEqual(['aborted', 500, 'changed my mind'])
    expect(next.at).toBe(1_000)
    await it.close()
  })
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

test('the place of one that is aborted goes to the next one of its node', async () => {
  const { world, queues, close } = await backgroundNodes(2)
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
  const went = startTimes([...one.ended, ...other.ended])
  expect(went).toHaveLength(5)
  // The second request is allowed after a tenth of a second, and then each of the others. No reservation stayed unused.
  for (const [place, at] of went.entries()) if (place > 1) expect(at - (went[place - 1] as number)).toBeLessThanOrEqual(110)
  expect(Math.max(next.at as number, ...others.map(({ at }) => at as number))).toBeLessThanOrEqual(2_100 + 440)
  await close()
})

test('who waits beyond its time takes nothing from the others', async () => {
  const { world, queues, close } = await backgroundNodes(2)
  const [one, other] = queues as [Waiting, Waiting]
  for (let i = 0; i < 20; i++) {
    one.acquire('a', { timeout: 450 })
    other.acquire('a', { timeout: '20s' })
  }
  await world.run(4_000)
  const went = startTimes([...one.ended, ...other.ended])
  expect(one.ended).toHaveLength(20)
  for (const { at } of one.ended) expect(at as number).toBeLessThanOrEqual(2_100 + 451)
  expect(other.went).toHaveLength(20)
  expect(went.length).toBeGreaterThanOrEqual(22)
  // Reservations of cancelled requests may stay unused: a few tenths of a second.
  expect(went.at(-1)).toBeLessThanOrEqual(2_100 + (went.length + 3) * 100)
  await close()
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

test('one that is aborted while it has a place, or while that is asked for, leaves it to the next one', async () => {
  const it = await central(1, { limit: 10, algorithm: leakyBucket({ burst: 0 }) }, 20)
  const [queue] = it.queues as [Waiting]
  const controllers = Array.from({ length: 10 }, () => new AbortController())
  for (const [i, { signal }] of controllers.entries()) queue.acquire('a', { name: String(i), signal })
  await it.world.run(10)
  controllers[0]?.abort()
  await it.world.run(200)
  controllers[4]?.abort()
  await it.world.run(2_000)
  expect(queue.went).toEqual(['1', '2', '3', '5', '6', '7', '8', '9'])
  const went = startsOf(it)
  for (const [i, at] of went.entries()) if (i > 0) expect(at - (went[i - 1] as number)).toBeLessThanOrEqual(101)
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

describe('requests that several policies count are asked for together', () => {
  test('one that is aborted meanwhile gives its own units back, and no other', async () => {
    const it = await central(
      1,
      [
        { ...SECOND, interval: 60_000 },
        { ...LONG, interval: 60_000 },
      ],
      20,
    )
    const [queue] = it.queues as [Waiting]
    const controller = new AbortController()
    for (let i = 0; i < 12; i++) queue.acquire('a', i === 8 ? { name: 'aborted', signal: controller.signal } : {})
    await it.world.run(30)
    controller.abort()
    await it.world.run(100)
    expect(queue.went).toHaveLength(11)
    expect(queue.went).not.toContain('aborted')
    const used = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await used)?.map((one) => one.used)).toEqual([11, 11])
    await it.close()
  })
})

describe('a bucket gives places ahead, and the other policies decide when these have come', () => {
  test('one that is aborted while the others decide gives back what they counted', async () => {
    const it = await central(1, [PACE, { ...LONG, interval: 60_000 }], 20)
    const [queue] = it.queues as [Waiting]
    const controller = new AbortController()
    for (let i = 0; i < 10; i++) queue.acquire('a', i === 7 ? { name: 'aborted', signal: controller.signal } : { name: String(i) })
    // The reservation is due, and the store decides about the window.
    while (queue.went.length < 6) await it.world.run(1)
    await it.world.run(5)
    controller.abort()
    await it.world.run(500)
    expect(queue.went).toEqual(['0', '1', '2', '3', '4', '5', '6', '8', '9'])
    const used = it.nodes[0]?.usage('a')
    await it.world.run(100)
    expect((await used)?.[1]?.used).toBe(9)
    expect(it.nodes[0]?.waiting).toBe(0)
    await it.close()
  })
})

test.each(Object.keys(ENDS) as (keyof typeof ENDS)[])('many requests that %s do not move each other up', async (end) => {
  const here = scene()
  const policy = { limit: MANY, interval: '1m', algorithm: leakyBucket(), coordination: 'local' }
  const queue = { maxWait: '5m', maxWaitingPerKey: MANY, ...ENDS[end] } as const
  const node = here.node(policy as never, { alone: true, queue })
  node.start()
  await waiting(here, node)
  const controller = new AbortController()
  const all = Array.from({ length: MANY }, () => node.acquire('a', { signal: controller.signal }).catch(({ reason }) => reason))
  await expect.poll(() => node.waiting).toBe(MANY - 1)
  const moves = vi.spyOn(Schedule.prototype, 'set')
  if (end === 'are aborted by one signal') controller.abort()
  else void node.close()
  expect(node.waiting).toBe(0)
  // If each request moved up behind each other one, there would be 79,000 moves.
  expect(moves.mock.calls.length).toBeLessThan(2 * MANY)
  moves.mockRestore()
  await Promise.all(all)
  if (end === 'are aborted by one signal') {
    // All reserved units were returned.
    expect(node.peek('a').remaining).toBe(MANY - 1)
    await node.close()
  }
})

for (const [title, loaded] of [
  ['the first requests of a process', false],
  ['later ones', true],
] as const) {
  for (const end of ['go', 'are aborted', 'are closed'] as const) {
    test.each(Object.keys(WAITS))(
      `many requests that wait with one signal add one listener until they ${end}, ${title}: %s`,
      async (call) => {
        const heard = warnings()
        const here = scene()
        const node = here.node(PACED, { alone: true, queue: { onClose: 'reject' } })
        if (loaded) await waiting(here, node)
        const controller = new AbortController()
        const { signal } = controller
        let ended = 0
        for (let i = 0; i < CALLS; i++) {
          WAITS[call]?.(node, signal)
            .catch(() => {})
            .finally(() => ended++)
        }
        await until(here, () => getEventListeners(signal, 'abort').length > 0)
        expect(getEventListeners(signal, 'abort')).toHaveLength(1)
        if (end === 'are aborted') controller.abort()
        else if (end === 'are closed') await here.close()
        await until(here, () => ended === CALLS)
        expect(getEventListeners(signal, 'abort')).toEqual([])
        await new Promise((resolve) => setImmediate(resolve))
        expect(heard).toEqual([])
        if (end === 'go') {
          // The signal can be used again.
          for (let i = 0; i < 5; i++) WAITS[call]?.(node, signal).catch(() => ended++)
          await until(here, () => getEventListeners(signal, 'abort').length === 1)
          controller.abort()
          await until(here, () => ended >= CALLS + 4)
          expect(getEventListeners(signal, 'abort')).toEqual([])
        }
        await here.close()
      },
    )
  }
}

test.each(EACH_CELL)('an aborted signal takes all out that wait with it, and nobody else: $name, $coordination', async (cell) => {
  const { algorithm, coordination } = cell
  const here = scene()
  const policy = { limit: 5, algorithm, coordination, ...(cell.name !== 'concurrency()' && { interval: 1_000 }) }
  const node = here.node(policy as unknown as AnyPolicyOptions, { alone: coordination === 'local' })
  const { acquire, ended } = await waiting(here, node)
  await here.world.run(1_500)
  const [one, other] = [new AbortController(), new AbortController()]
  const all = Array.from({ length: 30 }, (_, i) => acquire('a', { signal: i % 2 === 0 ? one.signal : other.signal, timeout: '20s' }))
  await here.world.run(100)
  one.abort()
  await here.world.settle()
  const left = all.filter((_, i) => i % 2 === 0)
  expect(left.every(({ at, failure, decision }) => at !== undefined && (failure === 'aborted' || decision?.allowed === true))).toBe(true)
  expect(ended.every(({ failure }) => failure === undefined || failure === 'aborted')).toBe(true)
  expect(getEventListeners(one.signal, 'abort')).toEqual([])
  expect(getEventListeners(other.signal, 'abort')).toHaveLength(1)
  other.abort()
  await here.close()
  expect(getEventListeners(other.signal, 'abort')).toEqual([])
})
