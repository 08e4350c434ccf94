import { describe, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import type { Usage, UsageOptions } from '../../src/throttler/usage.ts'
import { type Node, offer, scene } from '../support/nodes.ts'

const here = { limit: 100, interval: '1m' } as const

/** The `usage` of a process, in the world's time, and how long the call took. */
async function asked(
  { world }: Pick<ReturnType<typeof scene>, 'world'>,
  node: Node,
  key: string,
  options?: UsageOptions,
): Promise<readonly Usage[] & { took: number }> {
  const begun = world.time
  let took: number | undefined
  const answer = node.usage(key, options).finally(() => {
    took = world.time - begun
  })
  for (let waited = 0; took === undefined && waited < 5_000; waited++) await world.run(1)
  return Object.assign([...(await answer)], { took: took as number })
}

describe.each<[Algorithm, 'background' | 'periodic']>([
  [fixedWindow(), 'background'],
  [slidingWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [slidingCounter(), 'periodic'],
])('%o, %s', (algorithm, coordination) => {
  test('usage is the sum over all nodes, also of what they have not sent', async () => {
    const world = scene()
    const nodes = [1, 2, 3, 4].map(() => world.node({ ...here, algorithm, coordination }).start() as Node)
    await world.world.run(50)
    for (const [i, node] of nodes.slice(0, 3).entries()) offer(node, 'a', i + 1)
    for (const node of nodes) {
      const [usage] = await asked(world, node, 'a')
      expect(usage).toMatchObject({ policy: 'default', key: 'a', limit: 100, used: 6, remaining: 94, blockedForMs: 0, source: 'store' })
    }
    expect((await asked(world, nodes[3] as Node, 'nobody'))[0]).toMatchObject({ used: 0, remaining: 100, source: 'store' })
    expect(snapshot(nodes[3] as NonNullable<(typeof nodes)[3]>).policies[0]?.keys).toBeLessThanOrEqual(1)
    await world.close()
  })
})

test('refunds, and an interval that is over, count no more', async () => {
  const world = scene()
  const [one, two] = [world.node(here).start(), world.node(here).start()] as Node[] as [Node, Node]
  await world.world.run(50)
  const decision = one.check('a', 30)
  await world.world.run(500)
  one.refund(decision, 10)
  expect((await asked(world, two, 'a'))[0]?.used).toBe(20)
  await world.world.runTo(60_100)
  expect((await asked(world, two, 'a'))[0]?.used).toBe(0)
  await world.close()
})

test('a key was seen if any process counted units of it in the running interval, or it is blocked', async () => {
  const world = scene()
  const [one, two] = [world.node(here).start(), world.node(here).start()] as Node[] as [Node, Node]
  await world.world.run(50)
  const seen = async (key: string): Promise<boolean | undefined> => (await asked(world, two, key))[0]?.seen
  const decision = one.check('refunded', 30)
  await world.world.run(500)
  one.refund(decision)
  one.block('blocked', '10m')
  one.check('reset')
  two.check('own')
  expect(await Promise.all([seen('refunded'), seen('blocked'), seen('reset'), seen('own'), seen('never')])).toEqual([
    true,
    true,
    true,
    true,
    false,
  ])
  one.reset('reset')
  await world.world.run(20)
  expect(await seen('reset')).toBe(false)
  await world.world.runTo(60_100)
  expect([await seen('refunded'), await seen('blocked'), await seen('own')]).toEqual([false, true, false])
  await world.close()
})

test('a block is told, and whether it was set by hand', async () => {
  const world = scene()
  const [one, two] = [world.node({ ...here, cooldown: '10m' }).start(), world.node({ ...here, cooldown: '10m' }).start()] as Node[] as [
    Node,
    Node,
  ]
  await world.world.run(50)
  offer(one, 'a', 101)
  one.block('b', '5m')
  await world.world.run(50)
  expect((await asked(world, two, 'a'))[0]).toMatchObject({ remaining: 0, manual: false })
  const [usage] = await asked(world, two, 'b')
  expect(usage).toMatchObject({ remaining: 100, manual: true })
  expect(usage?.blockedForMs).toBeGreaterThan(290_000)
  await world.close()
})

/** Two processes that have counted 4 and 3 units of a key. */
async function counted() {
  const world = scene()
  const [one, two] = [world.node(here).start(), world.node(here).start()] as Node[] as [Node, Node]
  await world.world.run(50)
  offer(one, 'a', 4)
  offer(two, 'a', 3)
  await world.world.run(50)
  return { world, store: world.store, one }
}

describe.each(['rejecting', 'hanging', 'mute'] as const)('where the store is %s', (health) => {
  test('the answer comes within its time, and says that it is this node’s alone', async () => {
    const { world, store, one } = await counted()
    store.storeTimeout = 900
    store.health = health
    const first = await asked(world, one, 'a', { timeout: 200 })
    expect(first[0]).toMatchObject({ used: 4, source: 'node' })
    expect(first.took).toBeLessThanOrEqual(201)
    await world.world.run(2_000)
    expect(one.state).toBe('storeDown')
    const storeDown = await asked(world, one, 'a')
    expect(storeDown[0]).toMatchObject({ used: 4, source: 'node' })
    expect(storeDown.took).toBeLessThanOrEqual(1)
    store.health = 'up'
    await world.world.run(2_000)
    expect((await asked(world, one, 'a'))[0]).toMatchObject({ used: 7, source: 'store' })
    await world.close()
  })
})

test.each(['rejecting', 'hanging', 'mute'] as const)('a store that is %s for a moment is asked again within the time', async (health) => {
  const { world, store, one } = await counted()
  store.storeTimeout = 100
  store.health = health
  const asking = asked(world, one, 'a')
  await world.world.run(150)
  store.health = 'up'
  expect((await asking)[0]).toMatchObject({ used: 7, source: 'store' })
  await world.close()
})

test('a throttler that is closed meanwhile does not ask on', async () => {
  const world = scene()
  const one = world.node(here).start() as Node
  await world.world.run(50)
  world.store.health = 'rejecting'
  const asking = one.usage('a', { timeout: '1m' }).catch(({ code }) => code)
  await world.world.run(10)
  const closing = one.close()
  await world.world.run(1_500)
  await closing
  expect(await asking).toBe('WEIR_CLOSED')
  expect(one.clock.outstanding).toBe(0)
})

test('it waits for a store that connects, and fails in time', async () => {
  const world = scene()
  world.store.roundTrip = 40
  const one = world.node(here)
  expect((await asked(world, one, 'a'))[0]?.source).toBe('store')
  await world.close()
})

test('without a store it is what this node knows', async () => {
  const world = scene()
  const one = world.node(
    [
      { ...here, name: 'one', limit: 5 },
      { ...here, name: 'all', key: 'all' },
    ],
    { alone: true },
  )
  offer(one, 'a', 3)
  offer(one, 'b', 2)
  expect(await one.usage('a')).toEqual([
    expect.objectContaining({ policy: 'one', key: 'a', used: 3, remaining: 2, source: 'node' }),
    expect.objectContaining({ policy: 'all', key: 'all', used: 5, remaining: 95, source: 'node' }),
  ])
  expect(await one.usage('a', { policy: 'all' })).toHaveLength(1)
})

test('bad input is rejected by name', async () => {
  const one = scene().node(here, { alone: true })
  await expect(one.usage(5 as never)).rejects.toMatchObject({ code: 'WEIR_INVALID_KEY' })
  await expect(one.usage('a', { policy: 'none' })).rejects.toMatchObject({ code: 'WEIR_UNKNOWN_POLICY' })
  await expect(one.usage('a', { timeout: -1 })).rejects.toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  await one.close()
  await expect(one.usage('a')).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
})
