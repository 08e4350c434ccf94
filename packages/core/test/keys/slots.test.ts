import { seeds } from '@weir/tooling/seed'
import { describe, expect, test, vi } from 'vitest'
import type { Coordination } from '../../src/algorithms/algorithm.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { concurrency, fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, type Scene, scene, seeded, warnings } from '../support/nodes.ts'

// Each world runs for some seconds of its own time, and the code of a store is loaded in real time.
vi.setConfig({ testTimeout: 60_000 })

const ALGORITHMS = {
  'fixed window': fixedWindow(),
  'window of the first request': fixedWindow({ start: 'first-request' }),
  'sliding window': slidingWindow(),
  'sliding counter': slidingCounter(),
  'sliding log': slidingLog(),
  'token bucket': tokenBucket(),
  'leaky bucket': leakyBucket({ burst: 9, immediate: 9 }),
  'bucket that warms up': tokenBucket({ warmUp: '1s' }),
  concurrency: concurrency(),
}

function policy(algorithm: AnyPolicyOptions['algorithm'], coordination: Coordination, more: object = {}): AnyPolicyOptions<never> {
  const own = algorithm?.slots === undefined ? { interval: 1_000, cooldown: 1_000 } : {}
  return { limit: 3, algorithm, coordination, ...own, ...more } as AnyPolicyOptions<never>
}

/** Each algorithm with each coordination that it has. */
const CELLS = (['local', 'background', 'periodic', 'leased', 'central'] as const).flatMap((coordination) =>
  Object.entries(ALGORITHMS).flatMap(([name, algorithm]) => {
    try {
      scene().node(policy(algorithm, coordination))
      return [{ coordination, name, algorithm }]
    } catch {
      return []
    }
  }),
)

/** Waits for the code of a coordination, which is loaded in real time. */
async function loaded({ world }: Scene, node: Node): Promise<void> {
  node.checkAsync('first').then((decision) => node.release(decision))
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  await world.run(10)
}

/** Checks that each key of the table has its own slot. */
function expectWhole(node: Node, what: string): void {
  for (const { table, sharedSlot } of adapterOf(node).inspected.limiters) {
    let held = 0
    for (let slot = 0; slot < table.end; slot++) {
      const key = table.keys[slot]
      if (key === undefined || slot === sharedSlot) continue
      held++
      expect(table.find(key), what).toBe(slot)
    }
    expect(held, what).toBe(table.size)
  }
}

test('there are cells of each coordination', () => {
  expect(CELLS.length).toBeGreaterThan(24)
})

describe.each(CELLS)('$name, $coordination', ({ coordination, algorithm }) => {
  test.each(seeds(2))('whatever happens, each key has a slot of its own: seed %i', async (seed) => {
    warnings()
    const random = seeded(seed)
    const pick = <T>(...all: T[]): T => all[Math.floor(random() * all.length)] as T
    const it = scene()
    const node = it.node(policy(algorithm, coordination), { maxKeys: pick(5, 40, 1_000) })
    // In most runs the store is up only after the first keys.
    it.store.health = pick('up', 'rejecting', 'hanging')
    node.start()
    await loaded(it, node)
    for (let step = 0; step < 60; step++) {
      const key = `key ${Math.floor(random() * 30)}`
      const chance = random()
      if (chance < 0.6) {
        node.checkAsync(key, random() < 0.2 ? { limit: pick(0, 2, 50) } : {}).then((decision) => {
          if (random() < 0.3) node.refund(decision)
        })
      } else if (chance < 0.8) await it.world.run(pick(1, 10, 100, 900, 2_500, 7_000))
      else if (chance < 0.84) it.store.health = pick('rejecting', 'hanging', 'mute')
      else if (chance < 0.9) it.store.health = 'up'
      else if (chance < 0.93) node.update([policy(algorithm, coordination, { limit: pick(1, 3, 10) }) as AnyPolicyOptions])
      else if (chance < 0.95) node.block(key, pick('5ms', '3s'))
      else if (chance < 0.97) node.reset(key)
      else node.unblock(key)
      expectWhole(node, `step ${step}`)
    }
    it.store.health = 'up'
    await it.close()
  })

  test('keys that were rejected or blocked once, and never come back, leave no slot and no block', async () => {
    warnings()
    const it = scene()
    const node = it.node(policy(algorithm, coordination), { maxKeys: 100 })
    node.start()
    await loaded(it, node)
    await it.world.run(1_500)
    for (let i = 0; i < 120; i++) {
      for (let j = 0; j < 5; j++) void node.checkAsync(`key ${i}`).then((decision) => node.release(decision))
      if (i % 10 === 0) await it.world.run(5)
    }
    for (let i = 0; i < 30; i++) node.block(`other ${i}`, '1s')
    await it.world.run(100)
    for (const { table } of adapterOf(node).inspected.limiters) expect(table.size).toBeGreaterThan(0)
    await it.world.run(30_000)
    for (const { table, blocks } of adapterOf(node).inspected.limiters) expect([table.size, blocks.size]).toEqual([0, 0])
    await it.close()
  })
})
