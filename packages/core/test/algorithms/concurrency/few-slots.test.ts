import { expect, test } from 'vitest'
import { concurrency } from '../../../src/algorithms/concurrency/index.ts'
import { scene } from '../../support/nodes.ts'
import { waiting } from '../../support/waiting.ts'

test('where there are fewer slots than nodes whose requests wait all the time, each node gets its part of them', async () => {
  const it = scene()
  it.store.roundTrip = 2
  const policy = { limit: 2, algorithm: concurrency(), coordination: 'leased', failMode: 'closed' } as const
  const nodes = Array.from({ length: 5 }, () => it.node(policy))
  for (const node of nodes) node.start()
  for (const node of nodes) await waiting(it, node)
  await it.world.run(3_000)
  let over = false
  const got = nodes.map(() => 0)
  for (const [place, node] of nodes.entries()) {
    const one = async (): Promise<void> => {
      const decision = await node.acquire('a', { timeout: '30s' })
      got[place] = (got[place] as number) + 1
      node.clock.setTimeout(() => {
        node.release(decision)
        if (!over) void one().catch(() => {})
      }, 20)
    }
    for (let i = 0; i < 2; i++) void one().catch(() => {})
  }
  await it.world.run(6_000)
  over = true
  const all = got.reduce((sum, count) => sum + count, 0)
  // Two slots are each used for 20 ms, plus the time until the next process gets them.
  expect(all).toBeGreaterThan(360)
  expect(Math.min(...got), `${got}`).toBeGreaterThan((0.6 * all) / nodes.length)
  expect(Math.max(...got), `${got}`).toBeLessThan((1.5 * all) / nodes.length)
  await it.close()
})
