import { expect, test } from 'vitest'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { type Node, scene } from '../support/nodes.ts'

const leases = { name: 'leases', limit: 100, interval: 10_000, coordination: 'leased' } as const

async function started(count: number) {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: count }, () => here.node(leases))
  for (const node of nodes) node.start()
  await here.world.runTo(12_000)
  return { ...here, nodes: nodes as [Node, Node] }
}

test('a snapshot tells the units that a node holds ahead of requests, and nothing of overshoot', async () => {
  const { world, nodes, close } = await started(2)
  const [node] = nodes
  expect(snapshot(node).policies[0]?.leased).toBe(0)
  void node.checkAsync('a')
  await world.run(10)
  // Half of a half because there are two processes, and the unit of the request.
  expect(snapshot(node).policies[0]).toMatchObject({ leased: 25, allowed: 1, overshoot: 0 })
  void node.checkAsync('a', 99)
  await world.run(100)
  expect(snapshot(node).policies[0]).toMatchObject({ leased: 0, allowed: 100 })
  await close()
})

test('units of the next interval that a node has already count as held, and those of one that is over do not', async () => {
  const { world, nodes, close } = await started(1)
  const [node] = nodes
  void node.checkAsync('a')
  await world.runTo(19_900)
  const ahead = snapshot(node).policies[0]?.leased as number
  expect(ahead).toBeGreaterThan(49)
  await world.runTo(41_000)
  expect(snapshot(node).policies[0]?.leased).toBe(0)
  await close()
})

test('the view of the cluster tells what each node holds', async () => {
  const { world, nodes, close } = await started(2)
  const [one, two] = nodes
  void two.checkAsync('a')
  await world.run(20)
  for (let i = 0; i < 5; i++) {
    cluster(one)
    await world.run(1_000)
  }
  const held = new Map(cluster(one).map(({ node, policies }) => [node, policies[0]?.leased]))
  expect(held.get(one.nodeId)).toBe(0)
  expect(held.get(two.nodeId)).toBe(25)
  await close()
})

test('a store that has lost what nodes hold brings one warning at each node', async () => {
  const { world, store, nodes, close } = await started(2)
  const warnings = nodes.map((node) => {
    const codes: string[] = []
    node.on('warning', ({ error }) => codes.push(error.code))
    return codes
  })
  for (const node of nodes) void node.checkAsync('a')
  await world.run(20)
  store.hub.lose()
  await world.run(3_000)
  store.hub.lose()
  await world.run(3_000)
  expect(warnings).toEqual([['WEIR_WARN_QUOTA_LOST'], ['WEIR_WARN_QUOTA_LOST']])
  await close()
})
