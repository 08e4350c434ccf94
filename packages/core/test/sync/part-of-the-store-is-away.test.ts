import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { StoreConnection, SyncRequest } from '../../src/store/contract.ts'
import { offer, scene } from '../support/nodes.ts'

/** Simulates a slot of a cluster that is down: keys with a prefix get no answers, but others do. */
function withoutAnswersFor(prefix: string, away: { now: boolean }, asked: number[], time: () => number) {
  return (connection: StoreConnection): StoreConnection => ({
    close: () => connection.close(),
    sync: async (request: SyncRequest) => {
      const gone = request.entries.map(({ key }) => away.now && key.startsWith(prefix))
      if (gone.includes(true)) asked.push(time())
      const reply = await connection.sync({ ...request, entries: request.entries.filter((_, i) => gone[i] !== true) })
      const results = [...reply.results]
      return { ...reply, results: gone.map((missing) => (missing ? undefined : results.shift())) }
    },
  })
}

describe.each(['fixed', 'sliding'] as const)('a key in a %s window, whose part of the store is away while others answer', (window) => {
  function start() {
    const { world, node, store, close } = scene()
    const away = { now: false }
    const asked: number[] = []
    const open = store.open.bind(store)
    const wrap = withoutAnswersFor('lost', away, asked, () => world.time)
    store.open = (about) => wrap(open(about))
    const nodes = [1, 2].map(() =>
      node({ limit: 100, interval: 10_000, cooldown: 5_000, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }),
    )
    return { world, nodes, away, asked, close }
  }

  test('is decided by share, and others as ever', async () => {
    const { world, nodes, away, close } = start()
    for (const one of nodes) one.start()
    await world.run(2_500)
    away.now = true
    // The process learns that its part of the store is down as soon as a sync falls due.
    for (let i = 0; i < 300; i++) {
      for (const one of nodes) {
        offer(one, 'lost', 1)
        offer(one, 'kept', 1)
      }
      await world.run(5)
    }
    expect(nodes.map(({ state }) => state)).toEqual(['synced', 'synced'])
    const used = nodes.map((one) => one.peek('lost'))
    expect(used.map(({ allowed, reason }) => [allowed, reason])).toEqual([
      [false, 'storeDown'],
      [false, 'storeDown'],
    ])
    expect(nodes.map((one) => one.peek('kept').reason)).toEqual(['cooldown', 'cooldown'])
    await close()
  })

  test('is asked for again every 200 ms, and synced soon after the part is back', async () => {
    const { world, nodes, away, asked, close } = start()
    const [first, second] = nodes
    if (first === undefined || second === undefined) throw new Error('two nodes')
    first.start()
    second.start()
    await world.run(2_500)
    away.now = true
    offer(first, 'lost', 60)
    await world.run(500)
    asked.length = 0
    for (let i = 0; i < 200; i++) {
      offer(first, 'lost', 1)
      await world.run(5)
    }
    expect(asked.length).toBeGreaterThanOrEqual(3)
    // A span also ends within that second.
    expect(asked.length).toBeLessThanOrEqual(8)
    away.now = false
    await world.run(250)
    expect(first.peek('lost').reason).not.toBe('storeDown')
    await close()
  })

  test('is not hammered when the node closes, and does not hold it up beyond its storeTimeout', async () => {
    const { world, nodes, away, asked, close } = start()
    const [first] = nodes
    if (first === undefined) throw new Error('a node')
    first.start()
    await world.run(2_500)
    away.now = true
    offer(first, 'lost', 40)
    const begun = world.time
    await close(first)
    expect(world.time - begun).toBeLessThanOrEqual(1_010)
    // At most one round of the flush, and the key's own tries every 200 ms.
    expect(asked.length).toBeLessThanOrEqual(12)
    await close()
  })
})
