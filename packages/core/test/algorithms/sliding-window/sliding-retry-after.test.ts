import fc from 'fast-check'
import { expect, test } from 'vitest'
import { slidingWindow } from '../../../src/algorithms/sliding-window/index.ts'
import { offer, scene } from '../../support/nodes.ts'

const INTERVAL = 3_000
const BUCKET = INTERVAL / 30

const requests = fc.array(fc.record({ node: fc.nat(1), count: fc.integer({ min: 1, max: 12 }), pause: fc.integer({ min: 1, max: 400 }) }), {
  minLength: 8,
  maxLength: 40,
})

/** Returns the `retryAfterMs` that rejected clients get, and the time that they really have to wait. */
async function waits(
  list: typeof requests extends fc.Arbitrary<infer T> ? T : never,
  away: boolean,
): Promise<{ told: number; real: number }[]> {
  const here = scene()
  const nodes = [0, 1].map(() => here.node({ limit: 40, interval: INTERVAL, algorithm: slidingWindow() }))
  for (const node of nodes) {
    // The listener prevents a process warning about the outage.
    node.on('storeDown', () => {})
    node.start()
  }
  await here.world.run(1_500)
  const seen: { told: number; real: number }[] = []
  for (const [index, { node, count, pause }] of list.entries()) {
    if (away && index === 4) {
      here.store.health = 'rejecting'
      await here.world.run(1_100)
    }
    const one = nodes[node] as (typeof nodes)[0]
    offer(one, 'a', count)
    // All processes have sent their counts by then.
    await here.world.run(away ? 1 : 20)
    const { allowed, retryAfterMs } = one.peek('a')
    if (allowed) {
      await here.world.run(pause)
      continue
    }
    const begin = here.world.time
    while (!one.peek('a').allowed && here.world.time < begin + 2 * INTERVAL) await here.world.run(2)
    seen.push({ told: retryAfterMs, real: here.world.time - begin })
  }
  await here.close()
  return seen
}

test.each([
  [false, 'the store answers'],
  [true, 'the store is away'],
])('a client that waits as told is let in, and waits hardly longer than it must (store away: %s)', async (away) => {
  let rejections = 0
  await fc.assert(
    fc.asyncProperty(requests, async (list) => {
      for (const { told, real } of await waits(list, away)) {
        rejections++
        // Allows for the last step of the search, and for a whole millisecond.
        expect(real).toBeLessThanOrEqual(told + 3)
        expect(told).toBeLessThanOrEqual(real + BUCKET + 3)
      }
    }),
    { numRuns: 12 },
  )
  expect(rejections).toBeGreaterThan(12)
})
