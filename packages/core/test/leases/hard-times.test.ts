import { expect, test } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import { Hub } from '../../src/hub/hub.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { systemClock } from '../../src/time/clock.ts'
import { hostileKeys, type Node, type Scene, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const INTERVAL = 10_000
const leases = { name: 'leases', limit: 100, interval: INTERVAL, coordination: 'leased', failMode: 'closed' } as const

/** Processes that have synced, two seconds into an interval, and their allowed requests of a key per interval of the store's clock. */
async function started(count: number, options: object = {}) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node({ ...leases, ...options }))
  for (const node of nodes) node.start()
  await here.world.runTo(12_000)
  const perInterval = new Map<number, number>()
  const decided = { rejected: 0 }
  const count1 = ({ allowed }: Decision): void => {
    const interval = Math.floor(here.store.clock.now() / INTERVAL) - EPOCH / INTERVAL
    if (allowed) perInterval.set(interval, (perInterval.get(interval) ?? 0) + 1)
    else decided.rejected++
  }
  const offer = (node: Node, requests: number, key = 'a'): void => {
    for (let i = 0; i < requests; i++) {
      const decision = adapterOf(node).decideAsync([key], [1])
      if (decision instanceof Promise) void decision.then(count1)
      else count1(decision)
    }
  }
  return { ...here, nodes: nodes as [Node, Node, Node], offer, allowed: perInterval, decided }
}

async function flood({ world, offer, nodes }: Awaited<ReturnType<typeof started>>, until: number): Promise<void> {
  while (world.time < until) {
    for (const node of nodes) offer(node, 3)
    await world.run(50)
  }
}

test.each([
  ['an event loop that stands still for 10 s', 10_000],
  ['a process that is suspended for 30 s', 30_000],
])('%s: what was held of an interval that is over is not used', async (_what, pause) => {
  const here = await started(2)
  await flood(here, 13_000)
  const [asleep, awake] = here.nodes
  // All time passes for both, as they are of one world; only one of them has units.
  here.offer(asleep, 1)
  await here.world.run(10)
  here.world.stall(pause)
  here.offer(asleep, 200)
  here.offer(awake, 200)
  await here.world.run(100)
  await flood(here, here.world.time + 5_000)
  expect(Math.max(...here.allowed.values())).toBe(100)
  expect([...here.allowed.values()].every((units) => units <= 100)).toBe(true)
  await here.close()
})

test.each([
  ['ahead', 30_000],
  ['back', -30_000],
])("a node's wall clock that is stepped %s changes nothing", async (_to, step) => {
  const here = await started(2)
  await flood(here, 14_000)
  here.nodes[0].clock.offset += step
  await flood(here, 32_000)
  expect([...here.allowed.values()]).toEqual([100, 100, 100])
  await here.close()
})

test.each([
  ['ahead', 25_000],
  ['back', -25_000],
])("the store's clock is stepped %s: each interval of the nodes' time has the limit", async (_to, step) => {
  const here = await started(2)
  await flood(here, 14_000)
  here.store.clock.offset += step
  await flood(here, 45_000)
  // The first heartbeats are of the interval in which the nodes began.
  const begun = Math.floor(((here.store.requests.at(-1)?.request.time as number) - EPOCH) / INTERVAL)
  const allowed = [...here.allowed.values()].reduce((sum, units) => sum + units, 0)
  expect(begun).toBeGreaterThan(3)
  expect(allowed).toBeLessThanOrEqual(100 * begun)
  expect(allowed).toBeGreaterThan(100 * (begun - 1))
  await here.close()
})

test('a node that closes while requests wait answers each of them', async () => {
  for (const roundTrip of [2, 40, 1_000]) {
    const here = await started(1)
    here.store.roundTrip = roundTrip
    const [node] = here.nodes
    const waiting = Array.from({ length: 20 }, (_, i) => node.checkAsync(`key ${i % 3}`))
    let answered = 0
    for (const decision of waiting) {
      decision.then(
        () => answered++,
        () => answered++,
      )
    }
    await here.close(node)
    await here.world.run(200)
    expect(answered).toBe(20)
  }
})

test('keys that programs confuse with something else have leases of their own', async () => {
  const here = await started(2, { limit: 3 })
  const [one, two] = here.nodes
  const seen = new Set<string>()
  for (const key of hostileKeys) {
    if (seen.has(key)) continue
    seen.add(key)
    for (const node of [one, two]) here.offer(node, 5, key)
  }
  await here.world.run(500)
  expect(here.allowed.get(1)).toBe(3 * seen.size)
  await here.close()
})

test('new keys without end take no more memory than there is room for, and those in use keep what they hold', async () => {
  const here = await started(1)
  const small = here.node({ ...leases, name: 'small' }, { maxKeys: 100 })
  small.start()
  await here.world.run(100)
  const first = small.checkAsync('mine')
  await here.world.run(20)
  expect((await first).allowed).toBe(true)
  for (let i = 0; i < 2_000; i++) void small.checkAsync(`other ${i}`)
  await here.world.run(200)
  const again = adapterOf(small).decideAsync(['mine'], [1])
  expect(again instanceof Promise ? 'waits' : again.allowed).toBe(true)
  await here.close()
})

test('of a hundred thousand requests at one moment each is answered, and exactly the limit is allowed', async () => {
  const hub = new Hub(systemClock)
  const policies = [{ ...leases, limit: 70_000, interval: '1h', storeTimeout: 5_000 }] as const
  const nodes = [1, 2].map(() => new Throttler({ policies, store: memoryStore(hub) }))
  for (const node of nodes) node.start()
  const decisions = await Promise.all(Array.from({ length: 100_000 }, (_, i) => (nodes[i % 2] as Throttler).checkAsync('a')))
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(70_000)
  await Promise.all(nodes.map((node) => node.close()))
}, 60_000)

test('requests that no unit can be left for do not wait', async () => {
  const here = await started(1, { limit: 10 })
  const [node] = here.nodes
  here.store.roundTrip = 20
  const decisions = Array.from({ length: 100 }, () => adapterOf(node).decideAsync(['a'], [1]))
  expect(decisions.filter((decision) => decision instanceof Promise)).toHaveLength(10)
  await here.world.run(100)
  await here.close()
})

/** Entries that a node sends in some time. */
async function entriesIn(here: Scene, milliseconds: number): Promise<number> {
  const before = here.store.entries
  await here.world.run(milliseconds)
  return here.store.entries - before
}

test('a key that nobody asks for any more costs no exchanges', async () => {
  const here = await started(3)
  await flood(here, 19_000)
  await here.world.run(30_000)
  expect(await entriesIn(here, 60_000)).toBe(0)
  await here.close()
})
