import { seeds } from '@weir/tooling/seed'
import { expect, test, vi } from 'vitest'
import { central } from '../support/central-queues.ts'
import type { Node } from '../support/nodes.ts'
import { Chance } from '../support/queue-chaos.ts'
import type { Waiting } from '../support/waiting.ts'

// Much of it is computed; a busy machine needs time for that.
vi.setConfig({ testTimeout: 60_000 })

test.each((['rejecting', 'mute'] as const).flatMap((health) => seeds(15).map((seed) => ({ health, seed }))))(
  'however often the store comes and goes, it counts what went, and no more than the limit goes: $health, seed $seed',
  async ({ health, seed }) => {
    const chance = new Chance(seed)
    const limit = chance.pick(60, 10_000)
    const it = await central(1, { limit, interval: 3_600_000 }, chance.pick(0, 2, 20))
    it.store.storeTimeout = 100
    const [queue] = it.queues as [Waiting]
    const [node] = it.nodes as [Node]
    for (const end = it.world.time + 2_500; it.world.time < end; ) {
      if (chance.of(0.03)) it.store.health = it.store.health === 'up' ? health : 'up'
      for (let left = chance.pick(0, 0, 1, 2); left > 0; left--) queue.acquire('a', { timeout: '200ms' })
      await it.world.run(chance.pick(1, 3, 10, 40))
    }
    it.store.health = 'up'
    await it.world.run(6_000)
    expect(queue.went.length).toBeLessThanOrEqual(limit)
    const usage = node.usage('a')
    await it.world.run(200)
    expect((await usage)[0]?.used).toBe(queue.went.length)
    await it.close()
  },
)
