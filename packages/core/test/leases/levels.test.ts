import { expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { type Node, scene } from '../support/nodes.ts'

const INTERVAL = 10_000
const base = { interval: INTERVAL, limit: 100, failMode: 'closed' } as const
const leases = { ...base, name: 'leases', coordination: 'leased' } as const
const central = { ...base, name: 'central', coordination: 'central' } as const
const background = { ...base, name: 'background' } as const
const local = { ...base, name: 'local', coordination: 'local' } as const
const LEVELS = [leases, central, background, local] as const

async function started(policies: Parameters<ReturnType<typeof scene>['node']>[0], count = 2) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node(policies))
  const asks = [policies].flat().some(({ coordination }) => coordination === 'central')
  for (const node of nodes) node.start()
  // The code that sends requests to the store is loaded first, which takes real time.
  if (asks) await vi.waitFor(() => expect(here.store.deciders).toBe(count), { timeout: 4_000, interval: 5 })
  await here.world.runTo(12_000)
  /** Lets virtual time pass until the result is there. Code for the store is loaded meanwhile, which takes real time. */
  const settled = async <T>(promise: Promise<T>): Promise<T> => {
    let done = false
    void promise.finally(() => {
      done = true
    })
    while (!done) {
      await here.world.run(10)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return promise
  }
  const ask = (node: Node, cost = 1): Promise<Decision> => settled(node.checkAsync('a', cost))
  /** Units of each policy that all nodes have used. */
  const used = async (): Promise<Record<string, number>> => {
    const all = await settled((nodes[0] as Node).usage('a'))
    return Object.fromEntries(all.map((one) => [one.policy, one.used]))
  }
  return { ...here, nodes: nodes as [Node, Node], ask, settled, used }
}

test('a request that every level has room for is counted at each', async () => {
  const here = await started(LEVELS)
  const [one, two] = here.nodes
  const decision = await here.ask(one, 7)
  expect(decision.allowed).toBe(true)
  expect(decision.parts.map(({ policy, cost }) => [policy?.name, cost])).toEqual(LEVELS.map(({ name }) => [name, 7]))
  expect((await here.ask(two, 3)).allowed).toBe(true)
  expect(await here.used()).toEqual({ leases: 10, central: 10, background: 10, local: 7 })
  await here.close()
})

test.each(LEVELS.map(({ name }) => name))('a request that %s has no room for is counted at no other level', async (full) => {
  const here = await started(LEVELS.map((policy) => (policy.name === full ? { ...policy, limit: 5 } : policy)))
  const [one, two] = here.nodes
  for (const node of [one, two]) await here.ask(node)
  const before = await here.used()
  // Whether or not the lease's units are there already.
  for (const cost of [5, 20]) {
    const rejected = await here.ask(one, cost)
    expect(rejected).toMatchObject({ allowed: false, policy: { name: full } })
  }
  expect(await here.used()).toEqual(before)
  await here.close()
})

test('units that were granted while another level rejected are there for other nodes', async () => {
  const here = await started([leases, { ...central, limit: 1 }])
  const [one, two] = here.nodes
  expect((await here.ask(one)).allowed).toBe(true)
  // The lease is granted, then the other level rejects.
  expect((await here.ask(two, 1)).policy?.name).toBe('central')
  for (const node of [one, two]) node.update([leases, { ...central, limit: 1_000 }])
  await here.world.run(100)
  let allowed = 1
  for (let i = 0; i < 200; i++) if ((await here.ask(i % 2 === 0 ? one : two)).allowed && here.world.time < 20_000) allowed++
  expect(allowed).toBeGreaterThan(90)
  await here.close()
})

test('two policies by leases allow what the smaller one has, and lose nothing of the larger one', async () => {
  const small = { ...leases, name: 'small', limit: 10 }
  const here = await started([leases, small])
  const [one, two] = here.nodes
  let allowed = 0
  for (let i = 0; i < 30; i++) if ((await here.ask(i % 2 === 0 ? one : two)).allowed) allowed++
  expect(allowed).toBe(10)
  expect(await here.used()).toEqual({ leases: 10, small: 10 })
  await here.close()
})

test('a policy that only watches beside one by leases rejects nothing and is counted', async () => {
  const here = await started([leases, { ...background, limit: 1, dryRun: true }])
  const [one] = here.nodes
  for (let i = 0; i < 3; i++) expect((await here.ask(one)).allowed).toBe(true)
  expect((await here.used())['leases']).toBe(3)
  await here.close()
})

test('a refund and a charge of a decision go to each of its levels', async () => {
  const here = await started([leases, central, background, { ...base, name: 'bucket', algorithm: tokenBucket(), interval: '1h' }])
  const [one] = here.nodes
  const decision = await here.ask(one, 10)
  one.refund(decision, 4)
  await here.world.run(200)
  expect(await here.used()).toMatchObject({ leases: 6, central: 6, background: 6 })
  one.charge(decision, 20)
  await here.world.run(200)
  expect(await here.used()).toMatchObject({ leases: 26, central: 26, background: 26 })
  await here.close()
})

test('while the store is away each level decides by its own choice', async () => {
  const here = await started([
    { ...leases, failMode: 'open' },
    { ...background, failMode: 'closed' },
  ])
  const [one] = here.nodes
  here.store.health = 'rejecting'
  await here.world.run(2_000)
  expect(await here.ask(one)).toMatchObject({ allowed: false, reason: 'storeDown', policy: { name: 'background' } })
  one.update([
    { ...leases, failMode: 'open' },
    { ...background, failMode: 'open' },
  ])
  expect((await here.ask(one)).allowed).toBe(true)
  await here.close()
})

test.each([
  ['units', { interval: INTERVAL }, []],
  ['slots', { algorithm: concurrency() }, []],
  ['units beside a level that the store decides', { interval: INTERVAL }, [central]],
])('a request that finds no %s any more after it has waited for another level asks the store again', async (_, kind, beside) => {
  const shared = { name: 'shared', key: 'all', limit: 8, coordination: 'leased', failMode: 'closed', ...kind } as const
  const here = await started([{ ...leases, name: 'client' }, shared, ...beside] as never)
  const [one] = here.nodes
  expect((await here.ask(one)).allowed).toBe(true)
  const decisions = await here.settled(Promise.all(Array.from({ length: 12 }, (_, i) => one.checkAsync(`b${i % 2}`))))
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(7)
  for (const decision of decisions) if (!decision.allowed) expect(decision.policy?.name).toBe('shared')
  expect((await here.used())['client']).toBe(1)
  await here.close()
})

test('a request that asks the store again waits no longer than its storeTimeout in all', async () => {
  const shared = { ...leases, name: 'shared', key: 'all', limit: 8, storeTimeout: 100 } as const
  const here = await started([{ ...leases, name: 'client', storeTimeout: 100 }, shared])
  const [one] = here.nodes
  expect((await here.ask(one)).allowed).toBe(true)
  here.store.roundTrip = 70
  const since = here.world.time
  const ended: number[] = []
  for (let i = 0; i < 8; i++) void one.checkAsync('b').then(() => ended.push(here.world.time - since))
  await here.world.run(200)
  expect(ended).toHaveLength(8)
  // Requests that found units here end first. For the others the second reply would have come too late.
  expect([Math.min(...ended), Math.max(...ended)]).toEqual([70, 100])
  await here.close()
})
