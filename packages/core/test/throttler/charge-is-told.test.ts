import { expect, test } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { offer, scene } from '../support/nodes.ts'

test.each([
  ['fixed', {}],
  ['sliding', { algorithm: slidingWindow() }],
] as const)('a charge that passes the limit is told to the other nodes at once, with a %s window', async (_name, window) => {
  const { world, node, close } = scene()
  const [a, b] = [0, 1].map(() => node({ limit: 100, interval: '1h', spans: 2, ...window })) as [
    ReturnType<typeof node>,
    ReturnType<typeof node>,
  ]
  for (const one of [a, b]) one.start()
  await world.run(5_000)
  // So much that it is told by itself: nothing is left that the charge could go with.
  const decision = a.check('k', 60)
  await world.run(1_000)
  a.charge(decision, 500)
  await world.run(20)
  expect(offer(b, 'k', 200)).toBe(0)
  expect(b.peek('k').remaining).toBe(0)
  await close()
})

test('where counts are exchanged at the ends of spans only, so is a charge', async () => {
  const { world, node, close } = scene()
  const [a, b] = [0, 1].map(() => node({ limit: 100, interval: '1m', coordination: 'spans' })) as [
    ReturnType<typeof node>,
    ReturnType<typeof node>,
  ]
  for (const one of [a, b]) one.start()
  await world.run(5_000)
  a.charge(a.check('k'), 500)
  await world.run(20)
  expect(offer(b, 'k', 10)).toBe(10)
  await close()
})

test('without a store, or while it is away, a charge counts here', async () => {
  const { world, store, node, close } = scene()
  const alone = node({ limit: 10, interval: '1m' }, { alone: true })
  alone.charge(alone.check('k'), 20)
  expect(offer(alone, 'k', 1)).toBe(0)
  const one = node({ limit: 10, interval: '1m' })
  one.on('degraded', () => {})
  one.start()
  await world.run(2_000)
  store.health = 'refusing'
  await world.run(3_000)
  one.charge(one.check('k'), 20)
  expect(offer(one, 'k', 1)).toBe(0)
  store.health = 'up'
  await close()
})
