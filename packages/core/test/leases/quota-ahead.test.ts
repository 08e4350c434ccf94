import { expect, test } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { ordinalAt } from '../../src/time/intervals.ts'
import { type Scene, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

const leases = { name: 'leases', limit: 100, interval: 10_000, coordination: 'leased', failMode: 'closed' } as const
const other = { name: 'other', limit: 1, interval: '1h' } as const

type Node = ReturnType<Scene['node']>

/** Processes that have synced, two seconds into an interval. */
async function started(count: number, policies: Parameters<Scene['node']>[0] = leases) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node(policies))
  for (const node of nodes) node.start()
  await here.world.runTo(12_000)
  /** The decision about a request, after some time. */
  const ask = async (node: Node, key = 'a', cost = 1, wait = 100): Promise<Decision> => {
    const decision = node.checkAsync(key, cost)
    await here.world.run(wait)
    return await decision
  }
  return { ...here, nodes: nodes as [Node, Node, Node], ask }
}

/** How many of `count` requests are allowed at once. */
function offer(node: Node, key: string, count: number): number {
  let allowed = 0
  for (let i = 0; i < count; i++) {
    const decision = adapterOf(node).decideAsync([key], [1])
    if (!(decision instanceof Promise) && decision.allowed) allowed++
  }
  return allowed
}

/** Requests that are allowed at once or after a wait. */
async function allowed(
  { ask }: { ask: (node: Node, key: string, cost: number, wait: number) => Promise<Decision> },
  node: Node,
  count: number,
): Promise<number> {
  let allowed = 0
  for (let i = 0; i < count; i++) if ((await ask(node, 'a', 1, 30)).allowed) allowed++
  return allowed
}

test("a new key's first request waits for the store, and those after it do not", async () => {
  const here = await started(1)
  const [node] = here.nodes
  let decided = false
  void node.checkAsync('a').then(() => {
    decided = true
  })
  await here.world.run(1)
  expect(decided).toBe(false)
  await here.world.run(2)
  expect(decided).toBe(true)
  expect(offer(node, 'a', 10)).toBe(10)
  await here.close()
})

test('all nodes together allow exactly the limit, though one of them took much ahead', async () => {
  const here = await started(3)
  const [one, two, three] = here.nodes
  await here.ask(one)
  await here.ask(two)
  let sum = 2
  for (let i = 0; i < 40; i++) for (const node of [two, three, one]) if ((await here.ask(node, 'a', 1, 30)).allowed) sum++
  expect(sum).toBe(100)
  await here.close()
})

test('what a node holds that needs it no more comes back when little is left', async () => {
  const here = await started(2)
  const [idle, busy] = here.nodes
  await here.ask(idle)
  expect(await allowed(here, busy, 99)).toBe(99)
  expect((await here.ask(busy)).allowed).toBe(false)
  await here.close()
})

test('a request that costs more waits for as much as it needs, or is rejected and takes nothing', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  expect((await here.ask(one, 'a', 60)).allowed).toBe(true)
  expect((await here.ask(two, 'a', 60)).allowed).toBe(false)
  expect((await here.ask(two, 'a', 40)).allowed).toBe(true)
  expect(await here.ask(two, 'a', 101)).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  await here.close()
})

test('a request that costs less than a rejected one gets what is left', async () => {
  const here = await started(2, { ...leases, limit: 1 })
  const [node] = here.nodes
  expect((await here.ask(node, 'a', 0.25)).allowed).toBe(true)
  expect((await here.ask(node, 'a', 1)).allowed).toBe(false)
  expect((await here.ask(node, 'a', 0.75)).allowed).toBe(true)
  await here.close()
})

test('with the next interval the whole limit is there again', async () => {
  const here = await started(1)
  const [node] = here.nodes
  expect(await allowed(here, node, 3)).toBe(3)
  expect((await here.ask(node, 'a', 97)).allowed).toBe(true)
  expect((await here.ask(node)).allowed).toBe(false)
  await here.world.runTo(20_002)
  // The process took quota ahead in the last span, so no request waits.
  expect(offer(node, 'a', 5)).toBe(5)
  await here.close()
})

test('a refund is for others too', async () => {
  const here = await started(2, { ...leases, limit: 1 })
  const [one, two] = here.nodes
  const decision = await here.ask(one)
  expect((await here.ask(two)).allowed).toBe(false)
  one.refund(decision)
  await here.world.run(20)
  expect((await here.ask(two)).allowed).toBe(true)
  expect((await here.ask(one)).allowed).toBe(false)
  await here.close()
})

test('a request that another policy rejects takes nothing', async () => {
  const here = await started(1, [leases, other])
  const [node] = here.nodes
  expect((await here.ask(node)).allowed).toBe(true)
  expect(await here.ask(node)).toMatchObject({ allowed: false, policy: { name: 'other' } })
  expect(node.peek('a').parts[0]).toMatchObject({ remaining: 99 })
  await here.close()
})

test('without an answer within 50 ms a request is rejected, and what comes later is not lost', async () => {
  const here = await started(1)
  const [node] = here.nodes
  here.store.roundTrip = 200
  let decision: Decision | undefined
  void node.checkAsync('a').then((made) => {
    decision = made
  })
  await here.world.run(45)
  expect(decision).toBe(undefined)
  await here.world.run(10)
  expect(decision?.allowed).toBe(false)
  await here.world.run(500)
  here.store.roundTrip = 2
  expect(offer(node, 'a', 1)).toBe(1)
  expect((await here.ask(node, 'a', 99)).allowed).toBe(true)
  await here.close()
})

test('a request that comes while the next interval is asked for gets what is left of this one', async () => {
  const here = await started(1)
  const [node] = here.nodes
  expect((await here.ask(node, 'a', 60)).allowed).toBe(true)
  here.store.roundTrip = 20
  const asksAhead = () => here.store.requests.at(-1)?.request.entries.some(({ lease }) => lease?.ordinal === ordinalAt(EPOCH, 10_000) + 2)
  while (asksAhead() !== true && here.world.time < 20_000) await here.world.run(1)
  expect(here.world.time).toBeLessThan(19_900)
  expect((await here.ask(node, 'a', 40)).allowed).toBe(true)
  await here.close()
})

test('a request that was decided without an answer takes nothing from those after it', async () => {
  const here = await started(1)
  const [node] = here.nodes
  here.store.roundTrip = 20
  expect((await here.ask(node)).allowed).toBe(true)
  here.store.roundTrip = 80
  const late = node.checkAsync('a', 60)
  await here.world.run(55)
  expect((await late).allowed).toBe(false)
  expect((await here.ask(node, 'a', 60)).allowed).toBe(true)
  await here.close()
})

test.each([
  ['closed', 0],
  ['share', 50],
  ['open', 200],
] as const)('while the store is away a key without a lease is decided by failMode: %s', async (failMode, most) => {
  const here = await started(2, { ...leases, failMode })
  const [node] = here.nodes
  here.store.health = 'rejecting'
  await here.world.run(2_000)
  expect(node.state).toBe('storeDown')
  expect(offer(node, 'a', 200)).toBe(most)
  await here.close()
})

test('what a node holds it goes on using while the store is away, and not beyond its interval', async () => {
  const here = await started(1)
  const [node] = here.nodes
  await here.ask(node)
  here.store.health = 'rejecting'
  await here.world.run(2_000)
  const held = offer(node, 'a', 100)
  expect(held).toBeGreaterThan(10)
  expect(held).toBeLessThan(100)
  await here.world.runTo(20_001)
  expect(offer(node, 'a', 100)).toBe(0)
  await here.close()
})

test('a reset gives the whole limit again, less what others hold', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  expect((await here.ask(one, 'a', 100)).allowed).toBe(true)
  expect((await here.ask(two)).allowed).toBe(false)
  await here.world.run(1_000)
  two.reset('a')
  await here.world.run(100)
  expect((await here.ask(two, 'a', 60)).allowed).toBe(true)
  expect((await here.ask(one, 'a', 40)).allowed).toBe(true)
  expect((await here.ask(one)).allowed).toBe(false)
  await here.close()
})

test('a cooldown starts when the use that was told fills the limit, not when the units are merely held', async () => {
  const here = await started(2, { ...leases, cooldown: '1m' })
  const [one, two] = here.nodes
  await here.ask(one)
  // The whole limit, of which the other process has used one unit.
  expect(await here.ask(two, 'a', 100)).toMatchObject({ allowed: false, reason: 'limit' })
  // The other node returns its lease while this one waits.
  expect((await here.ask(two, 'a', 99)).allowed).toBe(true)
  await here.ask(two)
  expect(await here.ask(two)).toMatchObject({ allowed: false, reason: 'cooldown' })
  await here.close()
})

test('a node that closes gives back what it holds', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  await here.ask(one)
  await here.close(one)
  expect((await here.ask(two, 'a', 99)).allowed).toBe(true)
  await here.close()
})

test('a lowered limit holds for what is granted from then on', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  await here.ask(one)
  for (const node of here.nodes) node.update([{ ...leases, limit: 10 }])
  await here.world.run(100)
  expect(await allowed(here, two, 20)).toBe(9)
  expect(await allowed(here, one, 5)).toBe(0)
  await here.close()
})

test('usage is what all nodes have used, and not what they hold', async () => {
  const here = await started(2)
  const [one, two] = here.nodes
  await here.ask(one)
  expect(offer(one, 'a', 4)).toBe(4)
  await here.ask(two)
  const asked = two.usage('a')
  await here.world.run(500)
  expect((await asked)[0]).toMatchObject({ used: 6, remaining: 94, source: 'store' })
  await here.close()
})

test('rules may be swapped while a request waits', async () => {
  const here = await started(1, [leases, other])
  const [node] = here.nodes
  here.store.roundTrip = 20
  const waiting = node.checkAsync('a')
  await here.world.run(5)
  node.update([{ ...other, name: 'new' }, other, leases])
  await here.world.run(60)
  expect((await waiting).parts.map(({ policy, cost }) => [policy?.name, cost])).toEqual([
    ['other', 1],
    ['leases', 1],
  ])
  await here.close()
})

test('a policy that only watches lets nothing wait', async () => {
  const here = await started(1, { ...leases, limit: 3, dryRun: true })
  const [node] = here.nodes
  expect(offer(node, 'a', 3)).toBe(3)
  await here.world.run(50)
  expect(node.check('a')).toMatchObject({ allowed: true, dryRun: true, reason: 'limit' })
  await here.close()
})
