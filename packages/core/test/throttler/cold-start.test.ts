import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, offer, type Scene, scene, thrownBy } from '../support/nodes.ts'

const PROCESSES = 12
const LIMIT = 1_200

/** Processes that start while the store is down. */
async function coldStart(policy: object, expectedProcesses: number | undefined): Promise<Scene & { nodes: Node[] }> {
  const here = scene()
  here.store.health = 'rejecting'
  const options = expectedProcesses === undefined ? {} : { expectedProcesses }
  const nodes = Array.from({ length: PROCESSES }, () => here.node({ limit: LIMIT, interval: '1h', ...policy }, options))
  for (const node of nodes) node.start()
  await here.world.run(10)
  return { ...here, nodes }
}

/**
 * Units allowed of five times the limit, spread over all processes: first at once, and then after they have noticed that the store is down.
 */
async function allowedOf({ nodes, world }: Scene & { nodes: Node[] }): Promise<number> {
  let allowed = 0
  for (let part = 0; part < 5; part++) {
    for (const node of nodes) allowed += await asked(node, LIMIT / PROCESSES, world)
    await world.run(500)
  }
  return allowed
}

async function asked(node: Node, requests: number, world: Scene['world']): Promise<number> {
  if (node.policies[0]?.coordination !== 'central' && node.policies[0]?.coordination !== 'leased') return offer(node, 'a', requests)
  const asked = Array.from({ length: requests }, () => node.checkAsync('a'))
  await world.run(60)
  return (await Promise.all(asked)).filter(({ allowed }) => allowed).length
}

const CELLS = [
  ['fixedWindow(), background', { algorithm: fixedWindow() }],
  ['fixedWindow(), periodic', { coordination: 'periodic' }],
  ['fixedWindow(), leased', { coordination: 'leased' }],
  ['fixedWindow(), central', { coordination: 'central' }],
  ['slidingWindow(), background', { algorithm: slidingWindow() }],
  ['slidingWindow(), central', { algorithm: slidingWindow(), coordination: 'central' }],
  ['slidingCounter(), periodic', { algorithm: slidingCounter(), coordination: 'periodic' }],
  ['tokenBucket(), background', { algorithm: tokenBucket() }],
  ['tokenBucket(), central', { algorithm: tokenBucket(), coordination: 'central' }],
  ['leakyBucket({ immediate }), background', { algorithm: leakyBucket({ immediate: LIMIT / 2, burst: LIMIT / 2 }) }],
] as const

describe('processes that start while the store is down', () => {
  test.each(CELLS)('together keep the limit with expectedProcesses, with at most 5 percent overshoot: %s', async (_, policy) => {
    const here = await coldStart(policy, PROCESSES)
    expect(await allowedOf(here)).toBeLessThanOrEqual(LIMIT * 1.05)
    await here.close()
  })

  test.each(CELLS)('each allow the whole limit without it: %s', async (_, policy) => {
    const here = await coldStart(policy, undefined)
    expect(await allowedOf(here)).toBeGreaterThan(4 * LIMIT)
    await here.close()
  })

  test('have the whole limit as soon as the store has answered once', async () => {
    const here = await coldStart({}, PROCESSES)
    const [one] = here.nodes as [Node]
    expect(offer(one, 'a', LIMIT)).toBe(LIMIT / PROCESSES)
    expect(one.check('a')).toMatchObject({ allowed: false, limit: LIMIT })
    here.store.health = 'up'
    await here.world.run(1_000)
    // As after each outage, the next request triggers a sync of the others' counts.
    const first = offer(one, 'a', 1)
    await here.world.run(1_000)
    expect(first + offer(one, 'a', LIMIT)).toBe(LIMIT - LIMIT / PROCESSES)
    here.store.health = 'rejecting'
    await here.world.run(3_000)
    // The process has counted the others by now, so a new key gets this process's part of the limit.
    expect(offer(one, 'b', LIMIT)).toBe(LIMIT / PROCESSES)
    await here.close()
  })

  test('decide as fast as without it once the store has answered', async () => {
    const here = await coldStart({}, PROCESSES)
    const [one] = here.nodes as [Node]
    const { path } = adapterOf(one).inspected as unknown as { path: { single: unknown } }
    expect(path.single).toBeUndefined()
    here.store.health = 'up'
    await here.world.run(2_000)
    expect(path.single).toBeDefined()
    await here.close()
  })

  test('start no cooldown, because the others may not have used their parts', async () => {
    for (const coordination of ['background', 'periodic', 'central', 'leased'] as const) {
      const here = await coldStart({ coordination, cooldown: '10m' }, PROCESSES)
      const [one] = here.nodes as [Node]
      expect(await asked(one, LIMIT, here.world)).toBeLessThanOrEqual(LIMIT / PROCESSES)
      here.store.health = 'up'
      await here.world.run(1_000)
      await asked(one, 1, here.world)
      await here.world.run(1_000)
      expect(await asked(one, 1, here.world)).toBe(1)
      await here.close()
    }
  })

  test('allow one request of each key where the limit is smaller than their number', async () => {
    const here = await coldStart({ limit: 3 }, PROCESSES)
    for (const node of here.nodes) expect(offer(node, 'a', 5)).toBe(1)
    await here.close()
  })

  test('keep limits that a request, an override or an update gives, as parts', async () => {
    const here = await coldStart({ limit: 12 }, PROCESSES)
    const [one] = here.nodes as [Node]
    let allowed = 0
    for (let i = 0; i < 100; i++) allowed += Number(one.check('a', { limit: 60 }).allowed)
    expect(allowed).toBe(5)
    one.update([{ limit: 120, interval: '1h' }])
    expect(offer(one, 'b', 100)).toBe(10)
    await here.close()
  })
})

test.each([0, -1, 1.5, Number.NaN, '12', null])('expectedProcesses: %s is rejected by name', (expectedProcesses) => {
  const error = thrownBy(() => scene().node({ limit: 5, interval: '1m' }, { expectedProcesses } as never))
  expect(error).toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('Option "expectedProcesses" is') })
})
