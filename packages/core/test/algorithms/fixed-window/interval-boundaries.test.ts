import { describe, expect, test } from 'vitest'
import { adapterOf } from '../../../src/throttler/adapter-side.ts'
import { offer, scene } from '../../support/nodes.ts'
import { EPOCH } from '../../support/world.ts'

describe.each(['background', 'periodic'] as const)('%s', (coordination) => {
  test('a request exactly at a boundary belongs to the interval that begins', async () => {
    const { world, node, close, store } = scene()
    const throttler = node({ limit: 1, interval: 1_000, coordination })
    await world.runTo(999)
    expect(offer(throttler, 'a', 2)).toBe(1)
    world.stall(1)
    expect(adapterOf(throttler).clock.now() % 1_000).toBe(0)
    expect(offer(throttler, 'a', 2)).toBe(1)
    expect(throttler.check('a').resetAfterMs).toBe(1_000)
    await close()
    expect(store.total(throttler.policies[0] as never, 'a', EPOCH).taken).toBe(1)
    expect(store.total(throttler.policies[0] as never, 'a', EPOCH + 1_000).taken).toBe(1)
  })

  test('a request rolls over by itself when no timer has fired', async () => {
    const { world, node } = scene()
    const throttler = node({ limit: 2, interval: 1_000, coordination: 'local' }, { alone: true })
    await world.runTo(500)
    for (let interval = 0; interval < 5; interval++) {
      expect(offer(throttler, 'a', 5)).toBe(2)
      world.stall(1_000)
    }
  })

  test('sub-second spans and intervals', async () => {
    const { world, node, close, store } = scene()
    const throttler = node({ limit: 4, interval: 50, spans: 10, coordination })
    for (let i = 0; i < 8; i++) {
      await world.runTo(i * 50 + 20)
      expect(offer(throttler, 'a', 10)).toBe(4)
    }
    await close()
    for (let i = 0; i < 8; i++) expect(store.total(throttler.policies[0] as never, 'a', EPOCH + i * 50).taken).toBe(4)
  })

  test('an interval that its spans do not divide evenly', async () => {
    const { world, node, close } = scene()
    const throttler = node({ limit: 4, interval: 100, spans: 7, coordination })
    let allowed = 0
    await world.runTo(100)
    for (let i = 0; i < 20; i++) {
      allowed += offer(throttler, 'a', 10)
      await world.run(50)
    }
    expect(allowed).toBe(10 * 4)
    await close()
  })
})

test('a held event loop: what was counted before stays in its interval, what comes after belongs to the new one', async () => {
  const { world, node, close, store } = scene()
  const throttler = node({ limit: 100, interval: 2_000 })
  await world.runTo(1_900)
  expect(offer(throttler, 'a', 80)).toBe(80)
  world.stall(5_000)
  expect(offer(throttler, 'a', 150)).toBe(100)
  await world.run(1_000)
  await close()
  const [policy] = throttler.policies
  expect(store.total(policy as never, 'a', EPOCH).taken).toBe(80)
  expect(store.total(policy as never, 'a', EPOCH + 2_000).taken).toBe(0)
  expect(store.total(policy as never, 'a', EPOCH + 4_000).taken).toBe(0)
  expect(store.total(policy as never, 'a', EPOCH + 6_000).taken).toBe(100)
})

test('a held event loop and no request after it: timers alone book what was counted before', async () => {
  const { world, node, close, store } = scene()
  const throttler = node({ limit: 100, interval: 1_000 })
  await world.runTo(900)
  expect(offer(throttler, 'a', 80)).toBe(80)
  world.stall(5_000)
  await world.run(1_500)
  expect(store.total(throttler.policies[0] as never, 'a', EPOCH).taken).toBe(80)
  await close()
})
