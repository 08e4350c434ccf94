import { describe, expect, test } from 'vitest'
import type { Policy } from '../../../src/decide/policy.ts'
import { snapshot } from '../../../src/inspect/index.ts'
import { offer, scene } from '../../support/nodes.ts'
import { EPOCH } from '../../support/world.ts'

describe.each(['background', 'periodic'] as const)('%s', (coordination) => {
  test('the counts of each span, the last one included, are booked in the interval in which they were counted', async () => {
    const { world, node, close, store } = scene()
    const throttler = node({ limit: 600, interval: 600, spans: 6, coordination })
    const [policy] = throttler.policies as [Policy]
    await world.runTo(600)
    for (let span = 0; span < 12; span++) {
      await world.run(50)
      expect(offer(throttler, 'a', 40)).toBe(40)
      await world.run(50)
    }
    // The last span has just ended. Its counts are sent in the next one.
    await world.run(100)
    expect(store.total(policy, 'a', EPOCH + 600).taken).toBe(240)
    expect(store.total(policy, 'a', EPOCH + 1_200).taken).toBe(240)
    expect(store.total(policy, 'a', EPOCH + 1_800).taken).toBe(0)
    await close()
  })

  test('counts of the last millisecond, with a request of the next interval before they are sent', async () => {
    const { world, node, close, store } = scene()
    const throttler = node({ limit: 100, interval: 1_000, coordination })
    const [policy] = throttler.policies as [Policy]
    throttler.start()
    await world.runTo(999)
    expect(offer(throttler, 'a', 60)).toBe(60)
    world.stall(1)
    expect(offer(throttler, 'a', 50)).toBe(50)
    await world.run(1_200)
    expect(store.total(policy, 'a', EPOCH).taken).toBe(60)
    expect(store.total(policy, 'a', EPOCH + 1_000).taken).toBe(50)
    await close()
  })

  test('an answer that comes in the next interval does not count there', async () => {
    const { world, node, close, store } = scene()
    store.roundTrip = 40
    const throttler = node({ limit: 100, interval: 1_000, coordination })
    const [policy] = throttler.policies as [Policy]
    throttler.start()
    await world.runTo(980)
    expect(offer(throttler, 'a', 100)).toBe(100)
    await world.run(10)
    await world.runTo(1_005)
    expect(offer(throttler, 'a', 200)).toBe(100)
    await world.runTo(2_500)
    expect(store.total(policy, 'a', EPOCH).taken).toBe(100)
    expect(store.total(policy, 'a', EPOCH + 1_000).taken).toBe(100)
    await close()
  })

  test('what was rejected counts nowhere', async () => {
    const { world, node, close, store } = scene()
    const throttler = node({ limit: 10, interval: 1_000, coordination })
    const [policy] = throttler.policies as [Policy]
    expect(offer(throttler, 'a', 1_000)).toBe(10)
    await world.run(400)
    offer(throttler, 'a', 1_000)
    await close()
    expect(store.total(policy, 'a', EPOCH)).toEqual({ taken: 10, given: 0 })
    expect(snapshot(throttler).policies[0]).toMatchObject({ allowed: 10, rejected: 1_990 })
  })
})
