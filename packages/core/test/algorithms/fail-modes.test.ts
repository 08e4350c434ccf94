import { describe, expect, test } from 'vitest'
import type { FailMode } from '../../src/algorithms/meter.ts'
import { type Node, offer, type Scene, scene } from '../support/nodes.ts'

/** Two live processes whose store is down since the start of an interval. */
async function withoutStore(failMode: FailMode, rest: object = {}): Promise<Scene & { one: Node; two: Node }> {
  const here = scene()
  const [one, two] = [0, 1].map(() => here.node({ limit: 60, interval: 6_000, failMode, ...rest })) as [Node, Node]
  one.start()
  two.start()
  await here.world.run(1_100)
  here.store.health = 'rejecting'
  await here.world.runTo(6_001)
  expect([one.state, two.state]).toEqual(['storeDown', 'storeDown'])
  return { ...here, one, two }
}

test("'open' lets everything pass", async () => {
  const { one, close } = await withoutStore('open')
  expect(offer(one, 'a', 500)).toBe(500)
  expect(one.check('a').remaining).toBe(0)
  await close()
})

test("'closed' lets nothing pass", async () => {
  const { one, close } = await withoutStore('closed')
  expect(offer(one, 'a', 5)).toBe(0)
  expect(one.check('a')).toMatchObject({ allowed: false, reason: 'storeDown', retryAfterMs: 5_999 })
  await close()
})

describe("'share', the default", () => {
  test('a new key gets an equal part of the limit at each node, in each interval', async () => {
    const { one, two, world, close } = await withoutStore('share')
    for (let interval = 1; interval <= 3; interval++) {
      expect([offer(one, 'a', 500), offer(two, 'a', 500)]).toEqual([30, 30])
      await world.run(6_000)
    }
    await close()
  })

  test('a key that came through one node keeps nearly all of the limit there', async () => {
    const here = scene()
    const [one, two] = [0, 1].map(() => here.node({ limit: 60, interval: 6_000 })) as [Node, Node]
    one.start()
    two.start()
    for (let i = 0; i < 50; i++) {
      offer(one, 'a', 5)
      await here.world.run(350)
    }
    here.store.health = 'rejecting'
    await here.world.run(3_000)
    await here.world.runTo(24_001)
    expect(offer(one, 'a', 500)).toBeGreaterThan(50)
    expect(offer(one, 'a', 500)).toBe(0)
    await here.close()
  })

  test('what the cluster had taken before is taken into account', async () => {
    const here = scene()
    const [one, two] = [0, 1].map(() => here.node({ limit: 60, interval: 6_000 })) as [Node, Node]
    one.start()
    two.start()
    // After the second heartbeat both have each other in their count.
    await here.world.run(1_100)
    for (let i = 0; i < 20; i++) {
      await here.world.run(50)
      for (const node of [one, two]) offer(node, 'a', 1)
    }
    await here.world.run(1_500)
    here.store.health = 'rejecting'
    await here.world.run(1_000)
    // With 20 units left, each process's part is about half. It may not have received the other's last units.
    const more = [offer(one, 'a', 100), offer(two, 'a', 100)]
    expect(Math.max(...more)).toBeLessThanOrEqual(14)
    expect(Math.min(...more)).toBeGreaterThanOrEqual(7)
    await here.close()
  })

  test('an outage of the store is none of the service: a share below one unit lets one pass', async () => {
    const { one, two, close } = await withoutStore('share', { limit: 1 })
    expect([offer(one, 'a', 5), offer(two, 'a', 5)]).toEqual([1, 1])
    await close()
  })
})

test('each policy has its own choice', async () => {
  const here = scene()
  const throttler = here.node([
    { name: 'open', limit: 1, interval: '1m', failMode: 'open' },
    { name: 'closed', limit: 1, interval: '1m', failMode: 'closed' },
  ])
  throttler.start()
  here.store.health = 'rejecting'
  await here.world.run(1_100)
  const decision = throttler.check('a')
  expect(decision.allowed).toBe(false)
  expect(decision.policy?.name).toBe('closed')
  expect(decision.parts.map(({ allowed }) => allowed)).toEqual([true, false])
  await here.close()
})

test.each(['open', 'closed', 'share'] as const)('with coordination by spans too: %s', async (failMode) => {
  const { one, close } = await withoutStore(failMode, { coordination: 'periodic', cooldown: 0 })
  expect(offer(one, 'a', 100)).toBe({ open: 100, closed: 0, share: 60 }[failMode])
  await close()
})
