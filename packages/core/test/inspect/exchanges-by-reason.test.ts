import { expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import type { ExchangeReason } from '../../src/report/stats.ts'
import { type Node, offer, scene } from '../support/nodes.ts'

const sent = (node: Node, reason: ExchangeReason): number => snapshot(node).policies[0]?.exchanges[reason] ?? Number.NaN

test('a countdown, and a span that ends', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 100, interval: '6s' })
  throttler.start()
  await world.run(10)
  offer(throttler, 'a', 100)
  await world.run(10)
  expect(sent(throttler, 'countdown')).toBeGreaterThan(0)
  expect(sent(throttler, 'span-end')).toBe(0)
  const { entries } = snapshot(throttler).sync
  offer(throttler, 'b', 30)
  await world.run(2_000)
  expect(sent(throttler, 'span-end') + sent(throttler, 'countdown')).toBeGreaterThan(entries)
})

test('a hello to a key that is hot elsewhere', async () => {
  const { world, node } = scene()
  const [one, two] = [node({ limit: 100, interval: '1m' }), node({ limit: 100, interval: '1m' })]
  one.start()
  two.start()
  await world.run(1_500)
  offer(one, 'a', 60)
  await world.run(10)
  offer(two, 'a', 1)
  expect(sent(two, 'hello')).toBe(1)
})

test('a refund to a full key', async () => {
  const { world, node } = scene()
  const throttler = node({ limit: 3, interval: '1m' })
  throttler.start()
  await world.run(10)
  const decision = throttler.check('a')
  offer(throttler, 'a', 2)
  await world.run(10)
  throttler.refund(decision)
  expect(sent(throttler, 'refund')).toBe(1)
})

test('a request that waits for the store', async () => {
  const { world, node } = scene()
  const [one, two] = [
    node({ limit: 3, interval: '1m', coordination: 'leased' }),
    node({ limit: 3, interval: '1m', coordination: 'leased' }),
  ]
  one.start()
  two.start()
  await world.run(2_500)
  const waiting = one.checkAsync('a')
  await world.run(10)
  expect((await waiting).allowed).toBe(true)
  expect(sent(one, 'lease')).toBe(1)
})

test('all that is left, at close; and again after the store lost its data', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 1_000, interval: '1m' })
  throttler.start()
  await world.run(10)
  offer(throttler, 'a', 500)
  await world.run(1_500)
  store.hub.lose()
  await world.run(1_500)
  expect(sent(throttler, 'resend')).toBe(1)
  offer(throttler, 'b', 1)
  await close()
  expect(sent(throttler, 'close')).toBe(1)
})
