import { expect, test } from 'vitest'
import { scene } from '../support/nodes.ts'

test.each([
  ['10s', 6],
  ['30m', 6],
  ['31m', 7],
  ['1h', 12],
  ['1d', 288],
  ['7d', 1000],
])('an interval of %s has %i spans by default', (interval, spans) => {
  expect(scene().node({ limit: 10, interval: interval as '1h' }).policies[0]?.spans).toBe(spans)
})

test('of a long interval a node that is killed loses no more than it counted in its last span', async () => {
  const { world, node, close } = scene()
  const [a, b] = [0, 1].map(() => node({ limit: 1_000, interval: '1d' })) as [ReturnType<typeof node>, ReturnType<typeof node>]
  for (const one of [a, b]) one.start()
  await world.run(5_000)
  for (let i = 0; i < 7; i++) a.check('k')
  await world.run(6 * 60_000)
  // The counts of `k` that `b` receives come from the store.
  b.check('k', 300)
  await world.run(1_000)
  expect(b.peek('k').remaining).toBeLessThanOrEqual(1_000 - 307)
  await close()
})
