import { beforeAll, expect, test, vi } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import {
  type Algorithm,
  concurrency,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'
import { PRIORITIES, waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

// Code is loaded with the first request that needs it: how long that takes in real time must not matter.
beforeAll(async () => {
  for (const coordination of ['local', 'background', 'central']) {
    const { here, node } = await started({ name: 'p', limit: 5, interval: 1_000, coordination } as AnyPolicyOptions)
    await vi.waitFor(
      async () => {
        await vi.dynamicImportSettled()
        await pass(here, 20)
        expect(coordination === 'central' ? here.store.deciders : 1).toBe(1)
      },
      { timeout: 30_000 },
    )
    const done = node.schedule('a', () => true)
    await vi.dynamicImportSettled()
    await pass(here, 100)
    await done
    await here.close()
  }
})

const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  'fixedWindow()': fixedWindow(),
  "fixedWindow({ start: 'first-request' })": fixedWindow({ start: 'first-request' }),
  'slidingWindow()': slidingWindow(),
  'slidingCounter()': slidingCounter(),
  'slidingLog()': slidingLog(),
  'tokenBucket()': tokenBucket(),
  'leakyBucket()': leakyBucket(),
  'leakyBucket({ burst: 200 })': leakyBucket({ burst: 200 }),
  'concurrency()': concurrency() as unknown as Algorithm,
}

type Coordination = 'local' | 'background' | 'periodic' | 'leased' | 'central'

/** Each pair that there is. */
const CELLS: Readonly<Record<Coordination, readonly string[]>> = {
  local: Object.keys(ALGORITHMS),
  background: ['fixedWindow()', 'slidingWindow()', 'tokenBucket()', 'leakyBucket()', 'leakyBucket({ burst: 200 })'],
  periodic: ['fixedWindow()', 'slidingCounter()'],
  leased: ['fixedWindow()', 'concurrency()'],
  central: Object.keys(ALGORITHMS).filter((name) => name !== 'concurrency()'),
}

const MIXES: Readonly<Record<string, (i: number) => number>> = {
  'one priority': () => 0,
  'three priorities': (i) => [0, 2, -1, 0, 1][i % 5] as number,
}

interface Scheduled {
  readonly number: number
  readonly priority: number
  readonly came: number
  /** When it started, and as which one. */
  at: number
  place: number
}

/** Lets virtual time pass, and code be loaded, which takes real time: that is done before each millisecond. */
async function pass(here: Scene, milliseconds: number): Promise<void> {
  for (let i = 0; i < milliseconds; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(1)
  }
}

async function started(policy: AnyPolicyOptions): Promise<{ here: Scene; node: Node }> {
  const here = scene()
  here.store.roundTrip = 2
  const queue = { maxWait: '60s', maxWaitingPerKey: 1_000 } as const
  const node = here.node(policy, { queue, ...(policy.coordination === 'local' && { alone: true }) })
  node.start()
  await pass(here, 1_200)
  return { here, node }
}

/** 200 calls in ten ticks, the first 20 of them before what makes requests wait is loaded. */
async function schedule200(policy: AnyPolicyOptions, priorityOf: (i: number) => number): Promise<readonly Scheduled[]> {
  const { here, node } = await started(policy)
  const all: Scheduled[] = []
  let starts = 0
  const held: Promise<unknown>[] = []
  for (let burst = 0; burst < 10; burst++) {
    for (let i = 0; i < 20; i++) {
      const one: Scheduled = { number: all.length, priority: priorityOf(all.length), came: here.world.time, at: Number.NaN, place: -1 }
      all.push(one)
      const run = async () => {
        one.at = here.world.time
        one.place = starts++
        if (policy.algorithm?.slots !== undefined) await new Promise((resolve) => here.world.setTimer(() => resolve(undefined), 40))
      }
      held.push(node.schedule('a', run, { priority: PRIORITIES[one.priority + 2] as 'default', timeout: '30s' }))
    }
    await pass(here, 30)
  }
  await pass(here, 6_000)
  await here.world.run(30_000)
  await Promise.all(held)
  await here.close()
  return all
}

/** Pairs of which the second started first, though it came later and is no more urgent, or is less urgent and the first waited already. */
function inversions(all: readonly Scheduled[]): string[] {
  const found: string[] = []
  for (const one of all) {
    for (const other of all) {
      if (other.place >= one.place) continue
      const later = other.number > one.number && other.priority <= one.priority
      // The other one had not started when the more urgent one came, nor in the same moment.
      const lessUrgent = other.priority < one.priority && one.came < other.at
      if (later || lessUrgent) found.push(`${other.number} (priority ${other.priority}) before ${one.number} (${one.priority})`)
    }
  }
  return found
}

for (const [coordination, algorithms] of Object.entries(CELLS)) {
  for (const algorithm of algorithms) {
    for (const [priorities, priorityOf] of Object.entries(MIXES)) {
      const name = `${coordination} ${algorithm}, ${priorities}`
      test(`200 calls of schedule start in order: ${name}`, async () => {
        const own = { name: 'p', limit: algorithm === 'concurrency()' ? 4 : 50, coordination, algorithm: ALGORITHMS[algorithm] }
        const policy = (algorithm === 'concurrency()' ? own : { ...own, interval: 1_000 }) as unknown as AnyPolicyOptions
        expect(inversions(await schedule200(policy, priorityOf))).toEqual([])
      })
    }
  }
}

for (const coordination of ['local', 'background', 'central']) {
  for (const call of ['checkAsync', 'acquire'] as const) {
    test(`limits of two requests of a key that are under way do not overwrite each other: ${coordination}, ${call}`, async () => {
      const { here, node } = await started({ name: 'p', limit: 5, interval: 60_000, coordination } as AnyPolicyOptions)
      // Both are decided without the store, as it does not answer in time.
      here.store.health = 'hanging'
      const ask = (limit: number, cost: number) =>
        call === 'acquire' ? node.tryAcquire('a', { limit, cost, timeout: 500 }) : node.checkAsync('a', { limit, cost })
      const [first, second] = [ask(100, 50), ask(10, 2)]
      await here.world.run(1_000)
      expect(await first).toMatchObject({ allowed: true, limit: 100 })
      expect(await second).toMatchObject({ limit: 10 })
      here.store.health = 'up'
      await here.close()
    })
  }
}

for (const coordination of ['local', 'background', 'leased', 'central']) {
  test(`1,000 waiting requests of a key have a bounded number of timers: ${coordination}`, async () => {
    const { here, node } = await started({ name: 'p', limit: 20, interval: 1_000, coordination } as AnyPolicyOptions)
    const queue = await waiting(here, node)
    const [outstanding, set] = [node.clock.outstanding, node.clock.timersSet]
    for (let i = 0; i < 1_000; i++) queue.acquire('a', { timeout: 55_000 + i })
    await here.world.run(1)
    expect(node.waiting).toBeGreaterThan(900)
    expect([node.clock.outstanding - outstanding, node.clock.timersSet - set].map((count) => Math.min(10, count))).not.toContain(10)
    await here.close()
  })
}
