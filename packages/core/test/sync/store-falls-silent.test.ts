import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { SyncReply, SyncRequest } from '../../src/store/contract.ts'
import { type Node, offer, scene, seeded } from '../support/nodes.ts'

const LIMIT = 120
const INTERVAL = 2_000

/** Sends a request to each process every 10 ms: 600 in an interval, five times the limit. */
async function load(nodes: readonly Node[], world: { run(ms: number): Promise<void> }, ms: number): Promise<number> {
  let allowed = 0
  for (let passed = 0; passed < ms; passed += 10) {
    for (const node of nodes) allowed += offer(node, 'a', 1)
    await world.run(10)
  }
  return allowed
}

describe.each(['fixed', 'sliding'] as const)('a store that falls silent, with a %s window', (window) => {
  async function started(failMode: 'share' | 'open' | 'closed' = 'share') {
    const { world, store, node, close } = scene()
    store.roundTrip = 2
    store.storeTimeout = 1_000
    const nodes = [0, 1, 2].map(() =>
      node({ limit: LIMIT, interval: INTERVAL, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow(), failMode }),
    )
    const events: string[] = []
    for (const one of nodes) for (const name of ['storeDown', 'storeUp'] as const) one.on(name, () => void events.push(name))
    for (const one of nodes) one.start()
    // The processes receive each other's counts, and so their shares.
    await world.runTo(INTERVAL)
    await load(nodes, world, INTERVAL)
    // A window without requests frees the whole limit.
    await world.runTo(4 * INTERVAL + 100)
    return { world, store, nodes, events, close }
  }

  test('lets each node allow its share long before the storeTimeout tells that it is away', async () => {
    const { world, store, nodes, events, close } = await started()
    store.health = 'hanging'
    const allowed = await load(nodes, world, 950)
    expect(events).toEqual([])
    // Allowed are the units that no process had received when the first answer was overdue. Then each uses a third of the remaining units.
    expect(allowed).toBeGreaterThan(LIMIT * 0.7)
    expect(allowed).toBeLessThan(LIMIT * 1.2)
    await world.run(1_000)
    expect(events).toEqual(['storeDown', 'storeDown', 'storeDown'])
    store.health = 'up'
    await close()
  })

  test('and answers again before that: nothing is reported, and the limit is used up', async () => {
    const { world, store, nodes, events, close } = await started()
    store.roundTrip = 700
    const before = await load(nodes, world, 400)
    store.roundTrip = 2
    const after = await load(nodes, world, 1_400)
    expect(events).toEqual([])
    expect(before + after).toBeGreaterThanOrEqual(LIMIT)
    expect(before + after).toBeLessThan(LIMIT * 1.25)
    await close()
  })

  test.each(['open', 'closed'] as const)('changes nothing yet for who chose %s', async (failMode) => {
    const { world, store, nodes, close } = await started(failMode)
    store.health = 'hanging'
    await load(nodes, world, 300)
    const { allowed, reason } = (nodes[0] as Node).check('another')
    expect({ allowed, reason }).toEqual({ allowed: true, reason: 'ok' })
    expect(await load(nodes, world, 600)).toBeLessThanOrEqual(3 * LIMIT)
    store.health = 'up'
    await close()
  })

  test('is noticed some milliseconds after an answer was due, by keys that fill fast', async () => {
    const { world, store, nodes, close } = await started()
    store.health = 'hanging'
    let allowed = 0
    let at = Number.NaN
    for (let passed = 0; passed < 500 && Number.isNaN(at); passed += 1) {
      for (const node of nodes) allowed += offer(node, 'a', 1)
      if (nodes.some((node) => node.peek('a').reason === 'storeDown')) at = passed
      await world.run(1)
    }
    // The first sync is sent within some milliseconds. The shares are used up soon after.
    expect(at).toBeGreaterThan(4)
    expect(at).toBeLessThan(80)
    expect(allowed).toBeLessThan(1.2 * LIMIT)
    store.health = 'up'
    await close()
  })

  test('is noticed as soon when some of its answers were late before', async () => {
    const { world, store, nodes, close } = await started()
    for (let i = 0; i < 20; i++) {
      store.roundTrip = i % 10 === 0 ? 900 : 2
      for (const node of nodes) node.check(`late ${i}`)
      await load(nodes, world, 100)
    }
    store.roundTrip = 2
    await load(nodes, world, INTERVAL)
    await world.runTo(8 * INTERVAL + 100)
    store.health = 'hanging'
    await load(nodes, world, 100)
    expect(await load(nodes, world, 850)).toBeLessThan(LIMIT)
    store.health = 'up'
    await close()
  })

  test('is not taken for one that has become slow: that is usual soon', async () => {
    const { world, store, nodes, close } = await started()
    store.roundTrip = 200
    for (let i = 0; i < 800; i++) {
      for (const node of nodes) {
        const { reason } = node.check('b')
        if (i > 400) expect(reason).not.toBe('storeDown')
      }
      await world.run(10)
    }
    await close()
  })

  test('is not taken for one that is far away, with round trips from 100 to 250 ms', async () => {
    const { world, store, node, close } = scene()
    const random = seeded(7)
    store.roundTrip = 100
    const nodes = [0, 1, 2].map(() =>
      node({ limit: LIMIT, interval: INTERVAL, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
    )
    for (const one of nodes) one.start()
    await world.runTo(INTERVAL)
    for (let i = 0; i < 1_000; i++) {
      store.roundTrip = 100 + 150 * random()
      for (const node of nodes) expect(node.check('b').reason).not.toBe('storeDown')
      await world.run(10)
    }
    await close()
  })

  test('in one part, as others answer: the keys of that part are decided by share', async () => {
    const { world, store, node, close } = scene()
    store.roundTrip = 2
    const away = { now: false }
    const open = store.open.bind(store)
    store.open = (about) => {
      const connection = open(about)
      const sync = async (request: SyncRequest): Promise<SyncReply> => {
        if (!away.now || !request.entries.some(({ key }) => key === 'a')) return connection.sync(request)
        await new Promise<void>((resolve) => {
          store.clock.setTimeout(resolve, 1_000)
        })
        return { time: store.clock.now(), results: request.entries.map(() => undefined), blocks: [] }
      }
      return { sync, close: () => connection.close() }
    }
    const nodes = [0, 1, 2].map(() =>
      node({ limit: LIMIT, interval: INTERVAL, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
    )
    for (const one of nodes) one.start()
    await world.runTo(INTERVAL)
    await load(nodes, world, INTERVAL)
    await world.runTo(4 * INTERVAL + 100)
    away.now = true
    let allowed = 0
    for (let passed = 0; passed < 950; passed += 10) {
      allowed += await load(nodes, world, 10)
      offer(nodes[0] as Node, 'b', 1)
    }
    expect(allowed).toBeGreaterThan(LIMIT * 0.7)
    expect(allowed).toBeLessThan(LIMIT * 1.2)
    expect(nodes.map(({ state }) => state)).toEqual(['synced', 'synced', 'synced'])
    away.now = false
    await close()
  })
})
