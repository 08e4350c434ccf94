import { expect, test } from 'vitest'
import { slidingWindow } from '../../../src/algorithms/sliding-window/index.ts'
import { offer, scene } from '../../support/nodes.ts'

test('exceeding a sliding window begins one cooldown, not one at each node after the other', async () => {
  const here = scene()
  const nodes = [0, 1].map(() => here.node({ limit: 10, interval: 3_000, algorithm: slidingWindow(), cooldown: 200 }))
  const begun: number[] = []
  for (const node of nodes) node.on('blocked', ({ cause }) => void (cause === 'exceeded' && begun.push(here.world.time)))
  await here.world.runTo(100)
  const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]]
  offer(b, 'a', 1)
  await here.world.run(50)
  offer(a, 'a', 12)
  await here.world.run(20)
  expect(b.peek('a').reason).toBe('cooldown')
  while (here.world.time < 2_500) {
    await here.world.run(50)
    for (const node of nodes) expect(node.check('a').allowed).toBe(false)
  }
  expect(begun).toHaveLength(1)
})
