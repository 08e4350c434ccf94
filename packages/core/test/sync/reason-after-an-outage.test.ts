import { expect, test } from 'vitest'
import { fixedWindow, slidingWindow, tokenBucket } from '../../src/index.ts'
import { scene } from '../support/nodes.ts'

test.each([
  ['fixedWindow()', fixedWindow()],
  ['slidingWindow()', slidingWindow()],
  ['tokenBucket()', tokenBucket()],
])('requests above the share say that the store was down until all processes have sent their counts: %s', async (_, algorithm) => {
  const here = scene()
  here.store.roundTrip = 2
  const nodes = Array.from({ length: 3 }, () => here.node({ limit: 30, interval: 600_000, algorithm }))
  for (const node of nodes) node.start()
  const [node] = nodes as [(typeof nodes)[0]]
  node.check('k')
  await here.world.run(3_000)
  let up = 0
  node.on('storeUp', () => up++)
  here.store.health = 'rejecting'
  await here.world.run(2_000)
  for (let i = 0; i < 15; i++) node.check('k')
  here.store.health = 'up'
  const after: string[] = []
  for (let i = 0; i < 1_000 && after.length < 20; i++) {
    await here.world.run(1)
    if (up === 0) continue
    const { allowed, reason } = node.check('k')
    after.push(allowed ? 'allowed' : reason)
  }
  expect(new Set(after)).toEqual(new Set(['storeDown']))
  await here.close()
})
