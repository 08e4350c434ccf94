import { expect, test } from 'vitest'
import { type Node, scene } from '../../support/nodes.ts'

/** Two connected processes with a limit of 100 per hour. */
async function twoNodes() {
  const made = scene()
  const nodes = [0, 1].map(() => made.node({ limit: 100, interval: '1h', spans: 2 })) as [Node, Node]
  for (const one of nodes) one.start()
  await made.world.run(5_000)
  return { ...made, nodes }
}

test('after an expensive request was rejected, a cheap one that takes the rest is told at once', async () => {
  const { world, nodes, close } = await twoNodes()
  const [a, b] = nodes
  expect(a.check('k', 96).allowed).toBe(true)
  await world.run(20)
  expect(a.check('k', 50).allowed).toBe(false)
  expect(a.check('k', 4).allowed).toBe(true)
  await world.run(20)
  expect(b.check('k', 4).allowed).toBe(false)
  await close()
})

test('requests that leave no room for another like them are known to all nodes', async () => {
  const { world, nodes, close } = await twoNodes()
  const allowed = [0, 1, 0, 1, 0, 1].map((place) => nodes[place as 0 | 1])
  let units = 0
  for (const node of allowed) {
    if (node.check('k', 30).allowed) units += 30
    await world.run(20)
  }
  expect(units).toBe(90)
  await close()
})
