import { expect, test } from 'vitest'
import { scene } from '../../support/nodes.ts'

test('an announced total that holds units of this node that are still under way rejects nobody', async () => {
  const { world, node, store, close } = scene()
  store.roundTrip = 80
  const one = node({ limit: 20, interval: 300 })
  one.start()
  await world.runTo(50)
  // The end of the span sends these units. The store announces the key before its reply arrives.
  for (const cost of [1, 2, 1, 1]) one.check('b', cost)
  await world.run(1)
  one.check('b', 5)
  await world.run(13)
  one.check('b', 5)
  await world.runTo(91)
  expect(one.check('b', 5)).toMatchObject({ allowed: true, remaining: 0 })
  expect(one.check('b').allowed).toBe(false)
  await close()
})
