import { type Algorithm, fixedWindow, slidingWindow } from '@weir/core'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { expectSimulation, type Fault, faults, poisson, type Scenario, uniform, zipf } from '../src/index.ts'

vi.setConfig({ testTimeout: 120_000 })

/** There is a flood until here, in intervals. Then there are no requests until all blocks must have ended, and then half of the limit. */
const FLOOD_ENDS = 3
const QUIET_ENDS = 6

const trouble = fc.constantFrom<readonly Fault[]>(
  [],
  [{ kind: 'outage', from: 2.4, until: 2.9 }],
  [{ kind: 'outage', from: 2.4, until: 3.2, mode: 'hang' }],
  [{ kind: 'partition', from: 2.2, until: 2.8, node: 1 }],
  [{ kind: 'silence', from: 0, until: 4 }],
  [{ kind: 'data-loss', at: 2.5 }],
  [{ kind: 'store-clock', at: 2.5, step: -200 }],
  [
    { kind: 'crash', at: 2.3, node: 0 },
    { kind: 'restart', at: 2.6, node: 1 },
    { kind: 'scale', at: 2.7, nodes: 9 },
  ],
)

it('after a flood and whatever went wrong in it, everybody is let in again', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        seed: fc.integer({ min: 1, max: 1_000_000 }),
        nodes: fc.integer({ min: 2, max: 8 }),
        algorithm: fc.constantFrom<Algorithm>(fixedWindow(), slidingWindow()),
        cooldown: fc.constantFrom(0, 500, 3000),
        trouble,
        balancing: fc.constantFrom(uniform, zipf()),
      }),
      async ({ seed, nodes, algorithm, cooldown, trouble: list, balancing }) => {
        const scenario: Scenario = {
          seed,
          nodes,
          policy: { limit: 150, interval: 2000, algorithm, cooldown },
          warmup: QUIET_ENDS,
          intervals: 3,
          load: poisson((position) => {
            if (position < FLOOD_ENDS) return { times: 20, until: FLOOD_ENDS }
            return position < QUIET_ENDS ? { times: 0, until: QUIET_ENDS } : { times: 0.5, until: Number.POSITIVE_INFINITY }
          }),
          balancing,
          faults: faults(...list),
        }
        await expectSimulation(scenario, ({ measured, requests }) => {
          expect(requests).toBeGreaterThan(0)
          expect(measured.map(({ rejected }) => rejected)).toEqual([0, 0, 0])
        })
      },
    ),
    {
      numRuns: 30,
      examples: [
        // The first request after the pause still meets the share from the outage.
        [
          {
            seed: 1,
            nodes: 3,
            algorithm: slidingWindow(),
            cooldown: 500,
            trouble: [{ kind: 'outage', from: 2.4, until: 3.2, mode: 'hang' }],
            balancing: uniform,
          },
        ],
      ],
    },
  )
})
