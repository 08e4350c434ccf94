import { slidingWindow } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { expectSimulation, moving, poisson, roundRobin, type Scenario, sticky, uniform, zipf } from '../src/index.ts'

// Simulations use the CPU, so a busy machine needs more time.
vi.setConfig({ testTimeout: 120_000 })

/** Shortest time between two key writes of one key, in milliseconds. */
const SPACING = 2

const clusters = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  nodes: fc.integer({ min: 1, max: 16 }),
  limit: fc.integer({ min: 5, max: 400 }),
  interval: fc.integer({ min: 1000, max: 10_000 }),
  spans: fc.integer({ min: 2, max: 10 }),
  times: fc.constantFrom(0.5, 0.95, 1.1, 2, 10, 50),
  latency: fc.constantFrom(0.2, 0.5, 2),
  balancing: fc.constantFrom(uniform, roundRobin, sticky, zipf(), moving()),
})

/** The scenario of a cluster. The tests set the policy's window. */
function scenarioOf(cluster: typeof clusters extends fc.Arbitrary<infer T> ? T : never): Scenario {
  const { seed, nodes, limit, interval, spans, times, latency, balancing } = cluster
  return { seed, nodes, policy: { limit, interval, spans }, intervals: 4, load: poisson(times), balancing, network: { latency } }
}

/** x·(RTT + d + p)/INTERVAL: the requests that arrive before the processes learn that the limit is reached. */
function unheard({ times, latency, interval }: { times: number; latency: number; interval: number }): number {
  return (times * (2 * latency + SPACING + latency)) / interval
}

describe('a cluster with a fixed window', () => {
  it('overshoots by no more than what nodes may hold and what arrives before they hear of each other', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, async (cluster) => {
        const { limit, nodes } = cluster
        // Σθ <= max(MAX/2, L).
        const held = Math.max(limit / 2, nodes) / limit
        await expectSimulation(scenarioOf(cluster), ({ overshoot }) => {
          expect(overshoot.max).toBeLessThanOrEqual(held + unheard(cluster))
        })
      }),
      { numRuns: 20 },
    )
  })

  it('writes no more often than the bound, and never more than it allows and each node once', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, async (cluster) => {
        const { limit, nodes, spans } = cluster
        const most = nodes * spans + 3 * nodes * (1 + Math.max(0, Math.log(limit / (3 * nodes)))) + nodes + 1
        await expectSimulation(scenarioOf(cluster), ({ measured }) => {
          for (const { operations, allowed } of measured) {
            expect(operations).toBeLessThanOrEqual(most)
            expect(operations).toBeLessThanOrEqual(allowed + nodes + 1)
          }
        })
      }),
      { numRuns: 20 },
    )
  })
})

describe('a cluster with a sliding window', () => {
  it('never rejects while the window has room, and overshoots it by no more than the bound', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, async (cluster) => {
        const { limit, nodes } = cluster
        const scenario = scenarioOf(cluster)
        const held = Math.max(limit / 2, nodes) / limit
        await expectSimulation(
          { ...scenario, policy: { ...scenario.policy, algorithm: slidingWindow() } },
          ({ worstWindow, rejectedWithRoom }) => {
            expect(rejectedWithRoom).toBe(0)
            expect(worstWindow.max).toBeLessThanOrEqual(0.02 + held + unheard(cluster))
          },
        )
      }),
      { numRuns: 20 },
    )
  })
})
