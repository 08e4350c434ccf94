import { describe, expect, test } from 'vitest'
import { concurrency } from '../src/algorithms/concurrency/index.ts'
import type { Decision } from '../src/decide/decision.ts'
import type { AnyPolicyOptions } from '../src/decide/policy.ts'
import type { CheckOptions } from '../src/decide/request-path.ts'
import { adapterOf } from '../src/throttler/adapter-side.ts'
import { type Node, type Scene, scene } from './support/nodes.ts'

const LEASES = { name: 'leases', limit: 10, interval: '1h', coordination: 'leased', storeTimeout: '1s' } as const
const SLOTS = { name: 'slots', limit: 10, algorithm: concurrency(), coordination: 'leased', storeTimeout: '1s' } as const
const CENTRAL = { name: 'central', limit: 10, interval: '1h', coordination: 'central', storeTimeout: '1s' } as const

type Made = Scene & { readonly node: Node; readonly all: (...asked: (CheckOptions | undefined)[]) => Promise<Decision[]> }

/** A process that has synced, unless it is `fresh`, and the decisions for requests of one key that come at the same moment. */
async function made(policies: AnyPolicyOptions<never> | readonly AnyPolicyOptions<never>[], fresh = false): Promise<Made> {
  const here = scene()
  here.store.roundTrip = 2
  const node = here.node(policies)
  if (!fresh) {
    node.start()
    await here.world.run(3_000)
  }
  const all = async (...asked: (CheckOptions | undefined)[]) => {
    let decided: Decision[] | undefined
    void Promise.all(asked.map((options) => node.checkAsync('k', options))).then((decisions) => {
      decided = decisions
    })
    for (let turns = 0; decided === undefined && turns < 3_000; turns++) {
      await here.world.run(1)
      await new Promise(setImmediate)
    }
    return decided ?? []
  }
  return { ...here, node: node as never, all }
}

const told = (decisions: readonly Decision[]) => decisions.map(({ allowed, limit }) => [allowed, limit])

describe.each([
  ['fixed windows by leases', LEASES],
  ['slots by leases', SLOTS],
  ['the store that decides', CENTRAL],
] as const)('a request that waits goes by its own limit: %s', (_, policy) => {
  test('whatever limit a later one has', async () => {
    const { all, close } = await made(policy)
    expect(told(await all(undefined, { limit: 0 }))).toEqual([
      [true, 10],
      [false, 0],
    ])
    await close()
  })

  test('whatever limit an earlier one has', async () => {
    const { all, close } = await made(policy)
    expect(told(await all({ limit: 0 }, undefined, { limit: 1_000 }))).toEqual([
      [false, 0],
      [true, 10],
      [true, 1_000],
    ])
    await close()
  })

  test('also where requests of two limits come in turn', async () => {
    const { all, close } = await made(policy)
    const asked = Array.from({ length: 40 }, (_, i) => ({ limit: i % 2 === 0 ? 20 : 2 }))
    const decided = await all(...asked)
    const allowed = (limit: number) => decided.filter((decision) => decision.limit === limit && decision.allowed).length
    expect(decided.map(({ limit }) => limit)).toEqual(asked.map(({ limit }) => limit))
    expect([allowed(20), allowed(2)]).toEqual([19, 1])
    await close()
  })

  test('also where units are there already', async () => {
    const { all, node, close } = await made(policy)
    const first = await all(...Array.from({ length: 5 }, () => undefined))
    expect(told(await all({ limit: 5 }))).toEqual([[false, 5]])
    expect(told(await all({ limit: 6 }))).toEqual([[true, 6]])
    expect(told(await all({ limit: 0 }))).toEqual([[false, 0]])
    expect(told(await all(undefined))).toEqual([[true, 10]])
    for (const decision of first) node.release(decision)
    await close()
  })

  test('in the policies, too, that are asked after the wait', async () => {
    const { all, close } = await made([policy, { name: 'here', limit: 3, interval: '1h', coordination: 'local' }])
    const decided = await all({ limit: 100 }, { limit: 1 }, { limit: 100 })
    expect(decided.map(({ allowed }) => allowed)).toEqual([true, false, true])
    expect(decided.map(({ parts }) => parts.map(({ limit }) => limit))).toEqual([
      [100, 100],
      [1, 1],
      [100, 100],
    ])
    await close()
  })

  test('also before the node is connected', async () => {
    const { all, close } = await made(policy, true)
    expect(told(await all({ limit: 100 }, { limit: 0 }, undefined))).toEqual([
      [true, 100],
      [false, 0],
      [true, 10],
    ])
    await close()
  })

  test('also where the store does not answer', async () => {
    const { all, store, close } = await made(policy)
    store.health = 'hanging'
    const decided = await all(undefined, { limit: 1 }, { limit: 100 }, { limit: 2 })
    expect(decided.map(({ limit }) => limit)).toEqual([10, 1, 100, 2])
    expect(decided.map(({ allowed }) => allowed)).toEqual([true, false, true, false])
    await close()
  })

  test('and one that comes through an adapter by that of the policy', async () => {
    const { all, node, world, close } = await made(policy)
    await all(...Array.from({ length: 15 }, () => ({ limit: 100 })))
    const decision = adapterOf(node).decideAsync(['k'], [1])
    await world.run(50)
    expect(await decision).toMatchObject({ allowed: false, limit: 10 })
    await close()
  })
})

test('an update of the limit holds for requests that wait', async () => {
  const { node, world, store, close } = await made(LEASES)
  store.roundTrip = 20
  const decisions = Promise.all(Array.from({ length: 8 }, () => node.checkAsync('k')))
  await world.run(5)
  node.update([{ ...LEASES, limit: 3 }])
  await world.run(200)
  expect((await decisions).filter(({ allowed }) => allowed)).toHaveLength(3)
  await close()
})
