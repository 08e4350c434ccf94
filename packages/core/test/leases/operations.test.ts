import { expect, test } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import { escalating } from '../../src/decide/escalating.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, scene, thrownBy } from '../support/nodes.ts'

const leases = { name: 'leases', limit: 100, interval: 10_000, coordination: 'leased', failMode: 'closed' } as const

type Options = Parameters<Node['checkAsync']>[1]

async function started(count = 2, options: object = {}) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node({ ...leases, ...options }))
  for (const node of nodes) node.start()
  await here.world.runTo(12_000)
  const ask = async (node: Node, asked?: Options, key = 'a'): Promise<Decision> => {
    const decision = node.checkAsync(key, asked)
    await here.world.run(100)
    return await decision
  }
  const used = async (): Promise<number | undefined> => {
    const asked = (nodes[0] as Node).usage('a')
    await here.world.run(500)
    return (await asked)[0]?.used
  }
  return { ...here, nodes: nodes as [Node, Node], ask, used }
}

test('check throws from the first call on, and says what to call', async () => {
  const here = await started(1)
  expect(thrownBy(() => here.nodes[0].check('a'))).toMatchObject({ code: 'WEIR_ASYNC_POLICY' })
  await here.close()
})

test('peek tells what this node knows, takes nothing and asks for nothing', async () => {
  const here = await started()
  const [one, two] = here.nodes
  expect(one.peek('a')).toMatchObject({ remaining: 100 })
  await here.ask(one, 10)
  const entries = here.store.entries
  expect(one.peek('a')).toMatchObject({ remaining: 90 })
  expect(two.peek('a')).toMatchObject({ remaining: 100 })
  await here.world.run(200)
  expect(here.store.entries).toBe(entries)
  await here.close()
})

test('a charge counts beyond what is held, and what exceeds the limit is taken from what is left for others', async () => {
  const here = await started()
  const [one, two] = here.nodes
  const decision = await here.ask(one)
  one.charge(decision, 89)
  await here.world.run(200)
  expect(await here.used()).toBe(90)
  expect((await here.ask(two, 11)).allowed).toBe(false)
  expect((await here.ask(two, 10)).allowed).toBe(true)
  one.charge(decision, 50)
  await here.world.run(200)
  expect(await here.used()).toBe(150)
  expect((await here.ask(two)).allowed).toBe(false)
  await here.close()
})

test('a refund comes back once, and only in its interval', async () => {
  const here = await started()
  const [one, two] = here.nodes
  const decision = await here.ask(one, 100)
  one.refund(decision, 60)
  one.refund(decision, 60)
  await here.world.run(100)
  expect(await here.used()).toBe(0)
  expect((await here.ask(two, 100)).allowed).toBe(true)
  const last = await here.ask(one)
  expect(last.allowed).toBe(false)
  await here.world.runTo(20_100)
  const next = await here.ask(two, 30)
  await here.world.runTo(30_100)
  two.refund(next)
  expect(two.peek('a')).toMatchObject({ remaining: 100 })
  await here.close()
})

test('a refund of units of before a reset gives nothing back', async () => {
  const here = await started()
  const [one, two] = here.nodes
  const decision = await here.ask(one, 100)
  two.reset('a')
  await here.world.run(200)
  one.refund(decision)
  await here.world.run(100)
  expect((await here.ask(two, 100)).allowed).toBe(true)
  expect((await here.ask(one)).allowed).toBe(false)
  await here.close()
})

test('a block by hand rejects at all nodes without asking the store, and what is held stays', async () => {
  const here = await started()
  const [one, two] = here.nodes
  await here.ask(one)
  await here.ask(two)
  two.block('a', '5s')
  await here.world.run(50)
  for (const node of [one, two]) {
    const decision = adapterOf(node).decideAsync(['a'], [1])
    expect(decision).toMatchObject({ allowed: false, reason: 'blocked' })
  }
  two.unblock('a')
  await here.world.run(50)
  expect(adapterOf(one).decideAsync(['a'], [1])).toMatchObject({ allowed: true })
  await here.close()
})

test('a limit of a call is the one that the store is asked with', async () => {
  const here = await started()
  const [one, two] = here.nodes
  expect((await here.ask(one, { cost: 150, limit: 200 })).allowed).toBe(true)
  expect((await here.ask(two, { cost: 51, limit: 200 })).allowed).toBe(false)
  expect((await here.ask(two, { cost: 50, limit: 200 })).allowed).toBe(true)
  expect((await here.ask(one, { limit: 0 }, 'b')).allowed).toBe(false)
  expect((await here.ask(one, { cost: 1_000_000, limit: Number.POSITIVE_INFINITY }, 'c')).allowed).toBe(true)
  await here.close()
})

test('a raised limit gives more at once', async () => {
  const here = await started()
  const [one, two] = here.nodes
  expect((await here.ask(one, 100)).allowed).toBe(true)
  expect((await here.ask(two)).allowed).toBe(false)
  for (const node of here.nodes) node.update([{ ...leases, limit: 130 }])
  await here.world.run(100)
  expect((await here.ask(two, 30)).allowed).toBe(true)
  expect((await here.ask(one)).allowed).toBe(false)
  await here.close()
})

test('a dry run allows all, and tells what it would reject', async () => {
  const here = await started(2, { dryRun: true, limit: 10 })
  const [one, two] = here.nodes
  const decisions: Decision[] = []
  for (let i = 0; i < 20; i++) decisions.push(await here.ask(i % 2 === 0 ? one : two))
  expect(decisions.every(({ allowed }) => allowed)).toBe(true)
  // Requests don't wait, so each process uses the last counts that it received.
  const rejected = decisions.filter(({ reason }) => reason === 'limit').length
  expect(Math.abs(rejected - 10)).toBeLessThan(3)
  await here.close()
})

test('a cooldown grows with each offence, at all nodes', async () => {
  const here = await started(2, { limit: 10, cooldown: escalating({ base: '8s', max: '1h', factor: 10, memory: '1h' }) })
  const [one, two] = here.nodes
  const spend = async (): Promise<Decision> => {
    for (let i = 0; i < 10; i++) await here.ask(one)
    await here.ask(two)
    return here.ask(one)
  }
  const first = await spend()
  expect(first).toMatchObject({ allowed: false, reason: 'cooldown' })
  expect(first.retryAfterMs).toBeLessThanOrEqual(8_000)
  await here.world.runTo(32_000)
  const second = await spend()
  expect(second).toMatchObject({ allowed: false, reason: 'cooldown' })
  expect(second.retryAfterMs).toBeGreaterThan(60_000)
  expect(adapterOf(two).decideAsync(['a'], [1])).toMatchObject({ allowed: false, reason: 'cooldown' })
  await here.close()
})

test('a delay that depends on the request is rejected by name', () => {
  const { node } = scene()
  expect(thrownBy(() => node({ ...leases, delay: () => 1 } as never)).message).toMatch(/delay/)
})
