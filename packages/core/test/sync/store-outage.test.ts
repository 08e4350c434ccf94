import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { type Node, offer, scene } from '../support/nodes.ts'
import type { Health } from '../support/stores.ts'
import { EPOCH } from '../support/world.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

const unhandled: unknown[] = []
const hear = (reason: unknown): void => {
  unhandled.push(reason)
}

beforeEach(() => {
  process.on('unhandledRejection', hear)
})

afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', hear)
  expect(unhandled.splice(0)).toEqual([])
})

/** The state changes that a process reports. */
function changes(node: Node): string[] {
  const heard: string[] = []
  node.on('storeDown', () => heard.push('storeDown'))
  node.on('storeUp', () => heard.push('storeUp'))
  return heard
}

describe.each(['rejecting', 'hanging', 'mute'] as const)('a store that is %s', (health) => {
  test('is reported once, and once more when it answers again; requests are decided all the time', async () => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 1_000, interval: 1_000 })
    throttler.start()
    const heard = changes(throttler)
    await world.run(50)
    expect(throttler.state).toBe('synced')
    store.health = health
    for (let i = 0; i < 300; i++) {
      offer(throttler, `key ${i % 3}`, 20)
      await world.run(10)
    }
    expect(heard).toEqual(['storeDown'])
    expect(throttler.state).toBe('storeDown')
    store.health = 'up'
    for (let i = 0; i < 100; i++) {
      offer(throttler, `key ${i % 3}`, 20)
      await world.run(10)
    }
    expect(heard).toEqual(['storeDown', 'storeUp'])
    expect(throttler.state).toBe('synced')
    await close()
  })

  test('is asked every 200 ms, whatever is still unanswered, by an exchange without counts, however many keys there are', async () => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 1_000, interval: 1_000 })
    throttler.start()
    await world.run(50)
    store.health = health
    for (let i = 0; i < 500; i++) throttler.check(`key ${i}`, 600)
    await world.run(1_500)
    const from = store.requests.length
    for (let i = 0; i < 100; i++) {
      for (let key = 0; key < 50; key++) throttler.check(`key ${key}`)
      await world.run(30)
    }
    const probes = store.requests.slice(from)
    expect(probes.every(({ request }) => request.entries.length === 0 && request.heartbeat !== undefined)).toBe(true)
    const every = 200
    expect(probes.length).toBeGreaterThanOrEqual(Math.floor(3_000 / (every + 5)))
    expect(probes.length).toBeLessThanOrEqual(Math.ceil(3_000 / every) + 1)
    await close()
  })

  test('loses no count and doubles none', async () => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 5_000, interval: '1m' })
    throttler.start()
    await world.run(50)
    let allowed = 0
    for (let i = 0; i < 60; i++) {
      store.health = i % 20 < 12 ? health : 'up'
      allowed += offer(throttler, 'a', 17)
      await world.run(130)
    }
    store.health = 'up'
    await world.run(1_000)
    await close()
    expect(allowed).toBe(60 * 17)
    expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH)).toEqual({ taken: allowed, given: 0 })
  })

  test('at the very start: the node decides by itself, and joins the others when the store answers', async () => {
    const { world, node, store, close } = scene()
    store.health = health
    const throttler = node({ limit: 100, interval: '1m' })
    const heard = changes(throttler)
    expect(offer(throttler, 'a', 30)).toBe(30)
    expect(throttler.state).toBe('connecting')
    await world.run(500)
    expect(throttler.state).toBe('storeDown')
    expect(offer(throttler, 'a', 30)).toBe(30)
    store.health = 'up'
    await world.run(600)
    expect(heard).toEqual(['storeDown', 'storeUp'])
    await close()
    expect(store.total(throttler.policies[0] as Policy, 'a', EPOCH).taken).toBe(60)
  })
})

test('synced again within a second of the store’s return', async () => {
  const { world, node, store, close } = scene()
  const [one, two] = [0, 1].map(() => node({ limit: 100, interval: '1m', failMode: 'open' })) as [Node, Node]
  one.start()
  two.start()
  await world.run(1_100)
  store.health = 'hanging'
  await world.run(5_000)
  offer(one, 'a', 90)
  offer(two, 'a', 30)
  store.health = 'up'
  await world.run(1_000)
  expect(one.check('a').allowed).toBe(false)
  expect(two.check('a').allowed).toBe(false)
  await close()
})

test('blocked keys stay blocked, and their cooldown ends as it would have', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 5, interval: 1_000, cooldown: 3_000, failMode: 'open' })
  throttler.start()
  await world.run(100)
  offer(throttler, 'a', 6)
  throttler.block('b', 3_000)
  await world.run(10)
  store.health = 'rejecting'
  while (world.time < 3_090) {
    await world.run(50)
    if (world.time < 3_100) expect([throttler.check('a').allowed, throttler.check('b').allowed]).toEqual([false, false])
  }
  await world.runTo(3_101)
  expect([throttler.check('a').allowed, throttler.check('b').allowed]).toEqual([true, true])
  await close()
})

describe('no cooldown comes from units that were allowed while the store was away', () => {
  test.each(['rejecting', 'hanging'] as const)('%s', async (health) => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 10, interval: 60_000, cooldown: '10m', failMode: 'open' })
    throttler.start()
    await world.run(100)
    store.health = health
    await world.run(2_000)
    expect(throttler.state).toBe('storeDown')
    expect(offer(throttler, 'a', 50)).toBe(50)
    store.health = 'up'
    await world.run(1_000)
    expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'limit' })
    expect(snapshot(throttler).blocked).toEqual([])
    await world.runTo(60_001)
    expect(offer(throttler, 'a', 50)).toBe(10)
    expect(snapshot(throttler).blocked).toHaveLength(1)
    await close()
  })

  test('nor from a request that is rejected while it is away', async () => {
    const { world, node, store, close } = scene()
    const throttler = node({ limit: 10, interval: 60_000, cooldown: '10m', failMode: 'share' })
    store.health = 'rejecting'
    throttler.start()
    await world.run(100)
    expect(offer(throttler, 'a', 50)).toBe(10)
    expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'storeDown' })
    expect(snapshot(throttler).blocked).toEqual([])
    await close()
  })
})

test('a block that was set while the store was away reaches the others afterwards, with the time that is left', async () => {
  const { world, node, store, close } = scene()
  const [one, two] = [0, 1].map(() => node({ limit: 10, interval: '1m' })) as [Node, Node]
  one.start()
  two.start()
  await world.run(50)
  store.health = 'rejecting'
  await world.run(1_100)
  one.block('a', '10s')
  await world.run(4_000)
  expect(two.check('a').allowed).toBe(true)
  store.health = 'up'
  await world.run(1_000)
  const left = two.check('a').retryAfterMs
  expect(left).toBeGreaterThan(4_900)
  expect(left).toBeLessThanOrEqual(5_001)
  await close()
})

test('an outage that lasts long neither collects memory nor sends stale counts', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 10, interval: 1_000, failMode: 'open' })
  throttler.start()
  await world.run(50)
  store.health = 'rejecting'
  for (let second = 0; second < 120; second++) {
    for (let key = 0; key < 5; key++) offer(throttler, `key ${key}`, 10)
    await world.run(1_000)
  }
  const sent = store.entries
  store.health = 'up'
  await world.run(2_000)
  // Five keys of a dozen intervals at most, not of all 120.
  expect(store.entries - sent).toBeLessThanOrEqual(5 * 13)
  expect(store.entries - sent).toBeGreaterThan(0)
  await close()
})

test('random outages, at random moments, with several nodes: what the hub holds at the end is what was allowed', async () => {
  const step = fc.record({
    wait: fc.integer({ min: 1, max: 400 }),
    node: fc.nat({ max: 2 }),
    count: fc.nat({ max: 12 }),
    health: fc.option(fc.constantFrom<Health>('up', 'rejecting', 'hanging', 'mute'), { freq: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 50 }), fc.integer({ min: 1, max: 60 }), async (steps, roundTrip) => {
      const { world, node, store, close } = scene()
      store.roundTrip = roundTrip
      const nodes = [0, 1, 2].map(() => node({ limit: 100_000, interval: '1m', spans: 100 }))
      let allowed = 0
      for (const { wait, node: which, count, health } of steps) {
        if (health !== null) store.health = health
        allowed += offer(nodes[which] as Node, 'a', count)
        await world.run(wait)
      }
      store.health = 'up'
      await world.run(2_000)
      await close()
      expect(store.total(nodes[0]?.policies[0] as Policy, 'a', EPOCH)).toEqual({ taken: allowed, given: 0 })
    }),
    { numRuns: 30 },
  )
})

/** Two connected processes whose store has just gone down. */
async function twoWithoutTheirStore() {
  const { world, node, store, close } = scene()
  const [one, two] = [0, 1].map(() => node({ limit: 100, interval: 10_000 })) as [Node, Node]
  one.start()
  two.start()
  await world.run(1_500)
  store.health = 'rejecting'
  return { world, store, one, close }
}

describe('nodes that come back', () => {
  test('ask at the same moments, an interval’s begin among them', async () => {
    const { world, node, store, close } = scene()
    const nodes = [0, 150, -130].map((offset) => node({ limit: 100, interval: 1_000 }, { offset }))
    for (const one of nodes) {
      one.start()
      await world.run(17)
    }
    await world.run(1_000)
    store.health = 'rejecting'
    await world.runTo(4_100)
    const from = store.requests.length
    await world.runTo(5_100)
    const moments = store.requests.slice(from).map(({ at }) => Math.round(at / 5) * 5)
    expect([...new Set(moments)].sort()).toEqual([4_200, 4_400, 4_600, 4_800, 5_000])
    expect(moments).toHaveLength(15)
    await close()
  })

  test('in an interval that begins after the store did go on with no share of the outage', async () => {
    const { world, store, one, close } = await twoWithoutTheirStore()
    await world.runTo(9_990)
    expect(one.state).toBe('storeDown')
    store.health = 'up'
    // The request comes before the store's answer can arrive.
    await world.runTo(10_000)
    offer(one, 'a', 1)
    await world.runTo(10_020)
    expect(offer(one, 'a', 80)).toBe(80)
    await close()
  })

  test('while others still are away go on with their share until all must be back', async () => {
    const { world, store, one, close } = await twoWithoutTheirStore()
    await world.runTo(3_000)
    expect(offer(one, 'a', 80)).toBe(50)
    store.health = 'up'
    await world.runTo(3_210)
    expect(one.state).toBe('synced')
    expect(offer(one, 'a', 80)).toBe(0)
    await world.runTo(3_500)
    expect(offer(one, 'a', 80)).toBe(50)
    await close()
  })

  test('do not think that they are alone because the others are not back yet', async () => {
    const { world, node, store, close } = scene()
    const nodes = [0, 1, 2].map(() => node({ limit: 100, interval: '1m' }))
    for (const one of nodes) one.start()
    await world.run(1_500)
    const heard: number[] = []
    for (const one of nodes) one.on('nodes', ({ nodes: count }) => heard.push(count))
    store.health = 'rejecting'
    // The outage is longer than the store keeps a process.
    await world.runTo(8_000)
    store.health = 'up'
    await world.runTo(9_500)
    expect(heard).toEqual([])
    expect(nodes.map((one) => snapshot(one).nodes)).toEqual([3, 3, 3])
    await close()
  })
})
