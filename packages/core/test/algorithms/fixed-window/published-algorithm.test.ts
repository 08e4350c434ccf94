import { describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../../src/decide/policy.ts'
import { snapshot } from '../../../src/inspect/index.ts'
import { type Node, offer, type Scene, scene } from '../../support/nodes.ts'
import { EPOCH } from '../../support/world.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 30_000 })

const MINUTE = 60_000
const example = { limit: 300, interval: MINUTE, spans: 3, cooldown: '2m' } as const

interface Cluster extends Scene {
  readonly nodes: readonly [Node, Node, Node]
}

/** Three processes that sync in this order at the end of each span. */
async function cluster(options: Partial<PolicyOptions> = {}): Promise<Cluster> {
  const here = scene()
  const nodes = [0, 1, 2].map(() =>
    here.node({ ...example, coordination: 'periodic', ...options } as PolicyOptions<never>),
  ) as unknown as Cluster['nodes']
  await here.world.runTo(MINUTE - 2_000)
  for (const node of nodes) node.start()
  await here.world.runTo(MINUTE)
  return { ...here, nodes }
}

/** Offers the requests of key "a" to one process after the other. */
function offerEach({ nodes }: Cluster, counts: readonly number[]): number[] {
  return counts.map((count, i) => offer(nodes[i] as Node, 'a', count))
}

/** Returns the totals that the syncs of key "a" returned since the last call, each with the process. */
function recordWrites({ store, nodes }: Cluster): () => [number, number][] {
  const writes: [number, number][] = []
  const { hub } = store
  const exchange = hub.exchange.bind(hub)
  hub.exchange = (id, request) => {
    const reply = exchange(id, request)
    request.entries.forEach((entry, i) => {
      const cell = reply.results[i]?.cells[0]
      const who = nodes.findIndex((node) => node.nodeId === id)
      if (entry.key === 'a' && who >= 0 && cell !== undefined) writes.push([who, cell.taken - cell.given])
    })
    return reply
  }
  return () => writes.splice(0)
}

const spansOfExample = [
  [30, 25, 35],
  [40, 35, 30],
  [50, 45, 60],
] as const

describe('the worked example: a limit of 300, three nodes, spans of 30/25/35, 40/35/30, 50/45/60', () => {
  test('the writes of the last span return 245, 290 and 350, and only the third node blocks', async () => {
    const here = await cluster()
    const { world, nodes } = here
    const writes = recordWrites(here)
    const returned: [number, number][][] = []
    for (const [span, counts] of spansOfExample.entries()) {
      await world.run(1_000)
      expect(offerEach(here, counts)).toEqual(counts)
      await world.runTo(MINUTE + (span + 1) * 20_000)
      await world.run(1)
      returned.push(writes())
    }
    expect(returned).toEqual([
      [
        [0, 30],
        [1, 55],
        [2, 90],
      ],
      [
        [0, 130],
        [1, 165],
        [2, 195],
      ],
      [
        [0, 245],
        [1, 290],
        [2, 350],
      ],
    ])
    expect(nodes.map((node) => node.peek('a').allowed)).toEqual([true, true, false])
    expect(nodes.map((node) => snapshot(node).blocked.length)).toEqual([0, 0, 1])
    expect(nodes[2].check('a')).toMatchObject({ allowed: false, reason: 'cooldown', retryAfterMs: 120_000 - 1 })
    await here.close()
  })

  test('the others block when a later write of theirs returns more than 300', async () => {
    // The same counts come in the first three of four spans, so that one more span of the interval is left.
    const here = await cluster({ spans: 4 })
    const { world, nodes } = here
    for (const [span, counts] of spansOfExample.entries()) {
      await world.run(1_000)
      offerEach(here, counts)
      await world.runTo(MINUTE + (span + 1) * 15_000)
      await world.run(1)
    }
    expect(nodes.map((node) => node.peek('a').allowed)).toEqual([true, true, false])
    expect(offer(nodes[0], 'a', 1)).toBe(1)
    await world.runTo(2 * MINUTE + 1)
    expect(nodes.map((node) => node.peek('a').allowed)).toEqual([false, true, false])
    await here.close()
  })

  test('in the background all three stop at once', async () => {
    const here = await cluster({ coordination: 'background' })
    const { world, nodes } = here
    let allowed = 0
    for (const [span, counts] of spansOfExample.entries()) {
      await world.run(1_000)
      // Requests come one after the other, a millisecond apart.
      for (let i = 0; i < Math.max(...counts); i++) {
        nodes.forEach((node, n) => {
          if (i < (counts[n] as number)) allowed += offer(node, 'a', 1)
        })
        await world.run(3)
      }
      if (span < 2) await world.runTo(MINUTE + (span + 1) * 20_000)
    }
    expect(allowed).toBeGreaterThanOrEqual(300)
    expect(allowed).toBeLessThanOrEqual(302)
    expect(nodes.map((node) => node.check('a').allowed)).toEqual([false, false, false])
    await here.close()
  })
})

describe('a total above the limit blocks, one equal to it does not (rule 3)', () => {
  test.each([
    [300, true],
    [301, false],
  ])('%d', async (total, open) => {
    const here = await cluster()
    const { world, nodes } = here
    offer(nodes[0], 'a', total - 100)
    await world.run(20_001)
    offer(nodes[1], 'a', 100)
    await world.run(20_000)
    expect(nodes[1].peek('a').allowed).toBe(open)
    expect(nodes[0].peek('a').allowed).toBe(true)
    await here.close()
  })

  test('without a cooldown the key is blocked until the interval ends, and one that is found to exceed its limit after that is not blocked', async () => {
    const here = await cluster({ cooldown: 0 })
    const { world, nodes } = here
    offer(nodes[0], 'a', 200)
    offer(nodes[1], 'a', 101)
    await world.run(20_001)
    expect(nodes[1].check('a')).toMatchObject({ allowed: false, retryAfterMs: 39_999 })
    await world.runTo(2 * MINUTE)
    expect(nodes[1].check('a').allowed).toBe(true)
    await world.runTo(3 * MINUTE - 1_000)
    offer(nodes[0], 'b', 200)
    offer(nodes[1], 'b', 101)
    await world.run(2_000)
    expect(nodes.map((node) => node.peek('b').allowed)).toEqual([true, true, true])
    await here.close()
  })
})

describe('a write that failed blocks when the span held more than this node’s part (rule 4)', () => {
  test.each([
    [100, true],
    [101, false],
  ])('%d in a span, of 300 in three spans, at one node', async (count, open) => {
    const here = await cluster()
    const { world, nodes, store } = here
    store.health = 'rejecting'
    await world.run(1_000)
    expect(offer(nodes[0], 'a', count)).toBe(count)
    await world.run(19_001)
    expect(nodes[0].peek('a').allowed).toBe(open)
    await here.close()
  })

  test('the estimate of nodes counts: with three nodes a third of it is enough', async () => {
    const here = await cluster()
    const { world, nodes, store } = here
    for (const node of nodes) offer(node, 'a', 50)
    // A sync in the last span gives each process the final total.
    await world.run(50_000)
    for (const node of nodes) offer(node, 'a', 1)
    await world.runTo(2 * MINUTE + 1)
    store.health = 'rejecting'
    await world.run(1_500)
    offer(nodes[2], 'a', 33)
    offer(nodes[2], 'b', 34)
    await world.runTo(2 * MINUTE + 20_001)
    expect(nodes[2].peek('a').allowed).toBe(true)
    offer(nodes[2], 'a', 34)
    await world.runTo(2 * MINUTE + 40_001)
    expect(nodes[2].peek('a').allowed).toBe(false)
    expect(nodes[2].peek('b').allowed).toBe(true)
    await here.close()
  })

  test('each span counts for itself', async () => {
    const here = await cluster()
    const { world, nodes, store } = here
    store.health = 'rejecting'
    for (let span = 1; span <= 3; span++) {
      await world.run(1_000)
      expect(offer(nodes[0], 'a', 90)).toBe(90)
      await world.runTo(MINUTE + span * 20_000)
    }
    await world.run(1)
    expect(nodes[0].peek('a').allowed).toBe(true)
    await here.close()
  })
})

describe('nodes is one at first, then the total of the interval by the own count (rules 5 and 6)', () => {
  test('own count times nodes above the limit blocks at once, without any exchange', async () => {
    const here = await cluster()
    const { nodes, store } = here
    const before = store.requests.length
    expect(offer(nodes[0], 'a', 400)).toBe(300)
    expect(nodes[0].check('a')).toMatchObject({ allowed: false, reason: 'cooldown', retryAfterMs: 120_000 })
    expect(snapshot(nodes[0]).blocked).toHaveLength(1)
    expect(store.requests).toHaveLength(before)
    await here.close()
  })

  test('from the next interval on a node stops at its part of the limit', async () => {
    const here = await cluster({ cooldown: 0 })
    const { world, nodes } = here
    const counts = [20, 20, 40]
    offerEach(here, counts)
    await world.runTo(2 * MINUTE - 1_000)
    // These units are synced last, so the replies at the interval's end contain the total.
    offerEach(here, counts)
    await world.runTo(2 * MINUTE + 1_000)
    // There were 160 requests. The last syncs returned 100, 120 and 160.
    expect(offer(nodes[0], 'a', 300)).toBe(300 / (100 / 40))
    expect(offer(nodes[1], 'a', 300)).toBe(300 / (120 / 40))
    expect(offer(nodes[2], 'a', 300)).toBe(300 / (160 / 80))
    await here.close()
  })

  test('it is estimated for each key', async () => {
    const here = await cluster({ cooldown: 0 })
    const { world, nodes } = here
    offer(nodes[0], 'a', 50)
    offer(nodes[1], 'a', 50)
    offer(nodes[0], 'b', 50)
    await world.runTo(MINUTE + 30_000)
    offer(nodes[0], 'a', 1)
    offer(nodes[0], 'b', 1)
    await world.runTo(2 * MINUTE + 1_000)
    expect(offer(nodes[0], 'a', 400)).toBe(Math.floor(300 / (101 / 51)))
    expect(offer(nodes[0], 'b', 400)).toBe(300)
    await here.close()
  })
})

test('counts are written at span ends only, once for each key', async () => {
  const here = await cluster()
  const { world, nodes, store } = here
  for (let i = 0; i < 100; i++) {
    offer(nodes[0], 'a', 2)
    await world.run(199)
  }
  expect(store.entries).toBe(0)
  await world.runTo(MINUTE + 20_001)
  expect(store.entries).toBe(1)
  await here.close()
})

test('intervals are those of the own clock, whatever the store’s clock says', async () => {
  const here = scene({ storeOffset: 30_000 })
  const one = here.node({ ...example, coordination: 'periodic' })
  one.start()
  await here.world.runTo(5_000)
  offer(one, 'a', 10)
  await here.close()
  expect(here.store.total(one.policies[0] as never, 'a', EPOCH).taken).toBe(10)
})

test('exceeding the limit by units that were allowed while the store was away starts no cooldown afterwards', async () => {
  const here = await cluster({ failMode: 'open' })
  const { world, nodes, store } = here
  store.health = 'rejecting'
  await world.run(1_500)
  expect(offer(nodes[0], 'a', 400)).toBe(400)
  store.health = 'up'
  await world.run(1_000)
  expect(nodes[0].state).toBe('synced')
  expect(nodes[0].check('a')).toMatchObject({ allowed: false, reason: 'limit' })
  await world.runTo(2 * MINUTE + 2)
  expect(nodes[0].check('a').allowed).toBe(true)
  await here.close()
})
