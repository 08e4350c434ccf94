import { beforeAll, expect, test, vi } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { central, startsOf } from '../support/central-queues.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'
import { mostInASecond } from '../support/waiting.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Lets virtual time pass. Before each millisecond, code may load in real time. */
async function pass(here: Scene, milliseconds: number): Promise<void> {
  for (let i = 0; i < milliseconds; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(1)
  }
}

async function started(policy: AnyPolicyOptions): Promise<{ here: Scene; node: Node }> {
  const here = scene()
  here.store.roundTrip = 2
  const queue = { maxWait: '60s', maxWaitingPerKey: 1_000 } as const
  const node = here.node(policy, { queue, ...(policy.coordination === 'local' && { alone: true }) })
  node.start()
  await pass(here, 1_200)
  return { here, node }
}

// The first request that needs code loads it. The tests must not depend on the real time that this takes.
beforeAll(async () => {
  for (const coordination of ['local', 'background', 'central']) {
    const { here, node } = await started({ name: 'p', limit: 5, interval: 1_000, coordination } as AnyPolicyOptions)
    await vi.waitFor(
      async () => {
        await vi.dynamicImportSettled()
        await pass(here, 20)
        expect(coordination === 'central' ? here.store.deciders : 1).toBe(1)
      },
      { timeout: 30_000 },
    )
    const done = node.schedule('a', () => true)
    await vi.dynamicImportSettled()
    await pass(here, 100)
    await done
    await here.close()
  }
})

test.each(['local', 'background', 'central'])(
  'limits of two requests of a key that are under way do not overwrite each other: %s, checkAsync',
  async (coordination) => {
    const { here, node } = await started({ name: 'p', limit: 5, interval: 60_000, coordination } as AnyPolicyOptions)
    // Both are decided without the store, because it does not answer in time.
    here.store.health = 'hanging'
    const [first, second] = [node.checkAsync('a', { limit: 100, cost: 50 }), node.checkAsync('a', { limit: 10, cost: 2 })]
    await here.world.run(1_000)
    expect(await first).toMatchObject({ allowed: true, limit: 100 })
    expect(await second).toMatchObject({ limit: 10 })
    here.store.health = 'up'
    await here.close()
  },
)

test('requests with a limit of their own keep the pace of that, and are asked for together', async () => {
  const it = await central(3, { algorithm: leakyBucket() })
  for (let i = 0; i < 120; i++) it.queues[i % 3]?.acquire('a', { limit: 20 })
  await it.world.run(8_000)
  const went = startsOf(it)
  expect(went).toHaveLength(120)
  expect(mostInASecond(went)).toBeLessThanOrEqual(21)
  expect(went.at(-1)).toBeLessThanOrEqual(26_010)
  expect(it.asked().length).toBeLessThanOrEqual(70)
  // Without a limit of its own, a request follows the policy's limit again.
  for (let i = 0; i < 50; i++) it.queues[0]?.acquire('a')
  await it.world.run(520)
  expect(startsOf(it)).toHaveLength(170)
  await it.close()
})
