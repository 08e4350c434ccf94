import { describe, expect, test, vi } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { Overflow } from '../../src/decide/limiter.ts'
import type { Policy } from '../../src/decide/policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { offer, scene } from '../support/nodes.ts'
import { EPOCH } from '../support/world.ts'

// These tests compute a lot, so a busy machine needs time for them.
vi.setConfig({ testTimeout: 30_000 })

const policy = { name: 'user', limit: 5, interval: 1_000, cooldown: '1m' } as const

function keysOf(throttler: Parameters<typeof snapshot>[0]): number {
  return snapshot(throttler).policies[0]?.keys ?? Number.NaN
}

describe.each(['shared', 'allow', 'reject'] as const)('a flood of random keys, overflow: %s', (overflow) => {
  test('neither grows the table, nor evicts a key in use, nor unblocks anybody', async () => {
    const { world, node, close } = scene()
    const throttler = node(policy, { maxKeys: 100, overflow })
    const events: unknown[] = []
    throttler.on('overflow', (event) => events.push(event))
    offer(throttler, 'blocked', 6)
    throttler.block('by hand', '1m')
    offer(throttler, 'in use', 3)
    for (let i = 0; i < 20_000; i++) throttler.check(`random ${i}`)
    expect(keysOf(throttler)).toBe(100)
    expect(throttler.check('blocked').reason).toBe('cooldown')
    expect(throttler.check('by hand').reason).toBe('blocked')
    expect(throttler.check('in use')).toMatchObject({ allowed: true, remaining: 1 })
    expect(events).toEqual([{ policy: 'user', maxKeys: 100 }])

    // In the next intervals the flood continues, and blocked keys stay blocked.
    for (let interval = 1; interval <= 5; interval++) {
      await world.runTo(interval * 1_000 + 1)
      for (let i = 0; i < 2_000; i++) throttler.check(`more ${interval} ${i}`)
      expect(keysOf(throttler)).toBe(100)
      expect(throttler.check('blocked').reason).toBe('cooldown')
      expect(throttler.check('by hand').reason).toBe('blocked')
    }
    await close()
  })

  test('a new key is dealt with as chosen', () => {
    const { node } = scene()
    const throttler = node(policy, { maxKeys: 3, overflow })
    for (const key of ['a', 'b', 'c']) throttler.check(key)
    const expected: Record<Overflow, object[]> = {
      shared: [
        { allowed: true, reason: 'ok', remaining: 4 },
        { allowed: true, reason: 'ok', remaining: 3 },
      ],
      allow: [
        { allowed: true, reason: 'ok', remaining: 5, cost: 0 },
        { allowed: true, reason: 'ok', remaining: 5, cost: 0 },
      ],
      reject: [
        { allowed: false, reason: 'overflow', retryAfterMs: 1_000 },
        { allowed: false, reason: 'overflow', retryAfterMs: 1_000 },
      ],
    }
    expect([throttler.check('d'), throttler.check('e')]).toMatchObject(expected[overflow])
    expect(throttler.check('a')).toMatchObject({ allowed: true, remaining: 3 })
  })
})

test('the shared counter has a limit like any key, and its own counts in the store', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ ...policy, cooldown: 0 }, { maxKeys: 1 })
  throttler.check('a')
  let allowed = 0
  for (let i = 0; i < 20; i++) allowed += offer(throttler, `untrusted ${i}`, 1)
  expect(allowed).toBe(5)
  await world.runTo(1_001)
  expect(throttler.check('a').allowed).toBe(true)
  await close()
  const [checked] = throttler.policies as [Policy]
  expect(store.total(checked, '\u0000overflow', EPOCH).taken).toBe(5)
  expect(store.total(checked, 'untrusted 0', EPOCH).taken).toBe(0)
})

test('there is room again once keys are idle, and a second flood is reported again', async () => {
  const { world, node, close } = scene()
  const throttler = node(policy, { maxKeys: 10, overflow: 'reject' })
  let events = 0
  throttler.on('overflow', () => events++)
  for (let i = 0; i < 50; i++) throttler.check(`first ${i}`)
  expect(events).toBe(1)
  await world.runTo(1_001)
  expect(throttler.check('second').allowed).toBe(true)
  for (let i = 0; i < 50; i++) throttler.check(`second ${i}`)
  expect(events).toBe(2)
  expect(keysOf(throttler)).toBe(10)
  await close()
})

test.each(['background', 'periodic'] as const)(
  'keys are freed after two idle intervals, with and without a store (%s)',
  async (coordination) => {
    for (const alone of [true, false]) {
      const { world, node, close } = scene()
      const throttler = node({ limit: 5, interval: 1_000, coordination: alone ? 'local' : coordination }, { alone })
      for (let i = 0; i < 5_000; i++) throttler.check(`key ${i}`)
      await world.runTo(1_990)
      throttler.check('key 7')
      expect(keysOf(throttler)).toBe(5_000)
      await world.runTo(2_600)
      expect(keysOf(throttler)).toBe(1)
      await world.runTo(4_600)
      expect(keysOf(throttler)).toBe(0)
      await close()
    }
  },
)

test('a sliding window that fell idle leaves nothing, neither in its nodes nor in the store', async () => {
  const { world, store, node, close } = scene()
  const nodes = [0, 1].map(() => node({ limit: 5, interval: 3_000, algorithm: slidingWindow(), cooldown: 500 }))
  for (const one of nodes) one.start()
  for (let round = 0; round < 5; round++) {
    // Some keys reach their limit, some are near it, and most are far below it.
    for (const one of nodes) for (let i = 0; i < 300; i++) offer(one, `key ${i}`, i < 20 ? 5 : i < 40 ? 2 : round === 0 ? 1 : 0)
    await world.run(300)
  }
  expect(nodes.map(keysOf)).toEqual([300, 300])
  expect(store.hub.size).toBeGreaterThan(100)
  // The processes keep keys for a window and a sub-window, and notice this after a span. The store keeps its data for two ttls at most.
  await world.run(4_000)
  expect(nodes.map(keysOf)).toEqual([0, 0])
  await world.run(4 * 2 * 3_000)
  // The heartbeats of both processes.
  expect(store.hub.size).toBe(2)
  await close()
})

test('a blocked key is kept until its block is over, then freed', async () => {
  const { world, node, close } = scene()
  const throttler = node({ limit: 5, interval: 1_000, cooldown: '20s' })
  const unblocked: unknown[] = []
  throttler.on('unblocked', (event) => unblocked.push(event))
  offer(throttler, 'a', 6)
  await world.runTo(19_000)
  expect(keysOf(throttler)).toBe(1)
  expect(snapshot(throttler).blocked).toHaveLength(1)
  await world.runTo(21_000)
  expect(keysOf(throttler)).toBe(0)
  expect(unblocked).toHaveLength(1)
  await close()
})

test('counts of evicted keys are sent all the same', async () => {
  const { world, node, store, close } = scene()
  const throttler = node({ limit: 5, interval: 1_000, coordination: 'periodic' }, { maxKeys: 10 })
  throttler.start()
  await world.runTo(950)
  for (let i = 0; i < 10; i++) offer(throttler, `old ${i}`, 4)
  world.stall(60)
  for (let i = 0; i < 10; i++) expect(throttler.check(`new ${i}`).allowed).toBe(true)
  expect(keysOf(throttler)).toBe(10)
  await world.run(500)
  const [checked] = throttler.policies as [Policy]
  for (let i = 0; i < 10; i++) expect(store.total(checked, `old ${i}`, EPOCH).taken).toBe(4)
  await close()
})

test('200,000 keys that are seen once, at two nodes, cost next to nothing at the store', async () => {
  const { world, node, store, close } = scene()
  const nodes = [0, 1].map(() => node({ limit: 100, interval: 1_000 }, { maxKeys: 10_000 }))
  for (const one of nodes) one.start()
  await world.run(10)
  const before = store.entries
  let made = 0
  for (let round = 0; round < 40; round++) {
    for (const one of nodes) for (let i = 0; i < 2_500; i++) one.check(`key ${made++}`)
    await world.run(250)
    for (const one of nodes) expect(keysOf(one)).toBeLessThanOrEqual(10_000)
  }
  expect(made).toBe(200_000)
  expect((store.entries - before) / made).toBeLessThan(0.01)
  await close()
})
