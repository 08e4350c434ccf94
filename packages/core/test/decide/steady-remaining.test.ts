import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { type Node, scene } from '../support/nodes.ts'

vi.setConfig({ testTimeout: 60_000 })

type Step =
  | readonly ['check', number, number]
  | readonly ['run', number]
  | readonly ['store', 'up' | 'rejecting' | 'hanging' | 'mute']
  | readonly ['lose']
  | readonly ['announces', boolean]

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('check' as const), fc.nat(2), fc.integer({ min: 1, max: 12 })) },
    { weight: 4, arbitrary: fc.tuple(fc.constant('run' as const), fc.integer({ min: 1, max: 2_500 })) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('store' as const), fc.constantFrom('up', 'rejecting', 'hanging', 'mute')) },
    { weight: 1, arbitrary: fc.constant(['lose'] as const) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('announces' as const), fc.boolean()) },
  ) as fc.Arbitrary<Step>,
  { minLength: 10, maxLength: 60 },
)

test.each<[Algorithm, 'background' | 'periodic']>([
  [fixedWindow(), 'background'],
  [fixedWindow(), 'periodic'],
  [slidingWindow(), 'background'],
])('within an interval a node never tells more than it told last (%o, %s)', async (algorithm, coordination) => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const { world, store, node, close } = scene()
      const nodes = [0, 1, 2].map(() => node({ limit: 60, interval: '1m', algorithm, coordination }).start() as Node)
      store.roundTrip = 4
      await world.run(50)
      const last = nodes.map(() => 60)
      const look = (at: number, remaining: number): void => {
        expect(remaining).toBeLessThanOrEqual((last[at] as number) + 1e-9)
        last[at] = remaining
      }
      for (const step of list) {
        if (step[0] === 'check') {
          for (let i = 0; i < step[2]; i++) look(step[1], (nodes[step[1]] as Node).check('a').remaining)
        } else if (step[0] === 'run') await world.run(step[1])
        else if (step[0] === 'store') store.health = step[1]
        else if (step[0] === 'announces') store.announces = step[1]
        else store.hub.lose()
        // Units of sliding windows return with time, but all units of the first minute are in the window.
        if (world.time > 55_000) break
        for (const [at, one] of nodes.entries()) look(at, one.peek('a').remaining)
      }
      store.health = 'up'
      await close()
    }),
    { numRuns: 60 },
  )
})

/** The largest increase of `remaining` from one answer to the next, if a load balancer distributes requests in turn. */
async function largestJump(nodes: number, limit: number): Promise<number> {
  const { world, store, node, close } = scene()
  store.roundTrip = 2
  const all = Array.from({ length: nodes }, () => node({ limit, interval: '1m' }).start() as Node)
  await world.run(50)
  let last = limit
  let jump = 0
  for (let i = 0; i < 1.2 * limit; i++) {
    const { remaining } = (all[i % nodes] as Node).check('a')
    jump = Math.max(jump, remaining - last)
    last = remaining
    await world.run(40_000 / limit)
  }
  await close()
  return jump / limit
}

test.each([
  [3, 100, 0.25],
  [3, 1_000, 0.25],
  [12, 1_000, 0.35],
])('from node to node it jumps by no more than the documented part of the limit (%d nodes, limit %d)', async (nodes, limit, most) => {
  const jump = await largestJump(nodes, limit)
  expect(jump).toBeLessThanOrEqual(most)
})
