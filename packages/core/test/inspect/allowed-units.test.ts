import { expect, test, vi } from 'vitest'
import { fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type PolicySnapshot, snapshot } from '../../src/inspect/index.ts'
import { central } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'
import type { Waiting } from '../support/waiting.ts'

// The tests compute a lot, and a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

const HOUR = 3_600_000
/** This policy only watches, beside a policy that the store decides. */
const WATCHING = { name: 'watching', limit: 60, interval: HOUR, coordination: 'local', dryRun: true } as const

function watching(node: Node): PolicySnapshot {
  return snapshot(node).policies.find(({ name }) => name === 'watching') as PolicySnapshot
}

test('a request that leaves before its answer comes is not reported as allowed, and the sum never falls', async () => {
  const it = await central(1, [{ name: 'c' }, { ...WATCHING, limit: 3 }] as never, 20)
  const [[queue], [node]] = [it.queues as [Waiting], it.nodes as [Node]]
  const seen: number[] = []
  for (let i = 0; i < 10; i++) {
    const controller = new AbortController()
    queue.acquire('a', { signal: controller.signal })
    if (i < 5) it.world.setTimer(() => controller.abort(), 5)
    for (let step = 0; step < 10; step++) {
      await it.world.run(5)
      seen.push(watching(node).allowed)
    }
  }
  expect(queue.went).toHaveLength(5)
  expect(seen).toEqual(seen.toSorted((a, b) => a - b))
  expect(watching(node).allowed).toBe(3)
  await it.close()
})

test.each(Array.from({ length: 40 }, (_, i) => i + 1))(
  'a policy that only watches reports no more units as allowed than its limit, whatever happens beside it: seed %i',
  async (seed) => {
    const chance = new Chance(seed)
    const beside = chance.pick<object>(
      { limit: 30, interval: 500 },
      { limit: 60, interval: HOUR },
      { limit: 50, algorithm: tokenBucket() },
      { algorithm: leakyBucket({ burst: 5 }) },
    )
    const algorithm = chance.pick(
      fixedWindow(),
      fixedWindow({ start: 'first-request' }),
      slidingWindow(),
      slidingLog(),
      slidingCounter(),
      tokenBucket(),
    )
    const third = chance.pick<object[]>([], [{ name: 'l', limit: 40, interval: 700, coordination: 'local' }], [{ name: 'd', limit: 55 }])
    const it = await central(1, [{ name: 'c', ...beside }, { ...WATCHING, algorithm }, ...third] as never, chance.pick(0, 2, 20))
    it.store.storeTimeout = 100
    const [[queue], [node]] = [it.queues as [Waiting], it.nodes as [Node]]
    for (const end = it.world.time + 4_000; it.world.time < end; ) {
      if (chance.of(0.03)) it.store.health = it.store.health === 'up' ? chance.pick('rejecting', 'mute', 'hanging') : 'up'
      for (let left = chance.pick(0, 0, 1, 2); left > 0; left--) {
        if (chance.of(0.6)) queue.acquire('a', { timeout: chance.pick(0, 20, 200) })
        else void node.checkAsync('a')
      }
      await it.world.run(chance.pick(1, 3, 10, 40))
    }
    it.store.health = 'up'
    await it.world.run(2_000)
    // A token bucket is filled up a little meanwhile.
    expect(watching(node).allowed).toBeLessThanOrEqual(algorithm.name === 'tokenBucket()' ? 61 : 60)
    await it.close()
  },
)
