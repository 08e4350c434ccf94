import { leakyBucket, tokenBucket } from '@weir/core'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  bursts,
  crashes,
  doubling,
  expectSimulation,
  faults,
  moving,
  outages,
  poisson,
  restarts,
  roundRobin,
  type Scenario,
  sticky,
  uniform,
  zipf,
} from '../src/index.ts'

// Simulations use the CPU, so a busy machine needs more time.
vi.setConfig({ testTimeout: 120_000 })

const clusters = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  nodes: fc.integer({ min: 1, max: 12 }),
  limit: fc.integer({ min: 5, max: 300 }),
  interval: fc.integer({ min: 1000, max: 10_000 }),
  burst: fc.constantFrom(1, 0.2, 3),
  times: fc.constantFrom(0.5, 0.95, 1.1, 2, 20),
  latency: fc.constantFrom(0.2, 0.5, 5, 40),
  balancing: fc.constantFrom(uniform, roundRobin, sticky, zipf(), moving()),
  faults: fc.constantFrom(
    undefined,
    crashes,
    restarts,
    doubling(),
    outages({ length: 0.7, pause: 2 }),
    outages({ length: 2, pause: 2, mode: 'hang' }),
    faults({ kind: 'data-loss', at: 3.3 }),
  ),
  loss: fc.constantFrom(0, 0, 0.1),
})

type ClusterOf = typeof clusters extends fc.Arbitrary<infer T> ? T : never

function scenarioOf({ seed, nodes, limit, interval, burst, times, latency, balancing, faults: plan, loss }: ClusterOf): Scenario {
  const algorithm = tokenBucket({ burst: Math.max(1, burst * limit) })
  const load = times === 0.5 ? bursts({ size: Math.ceil(limit / 2), every: 1.3 }) : poisson(times)
  const network = { latency, loss, duplication: loss, announcementLoss: loss }
  return { seed, nodes, policy: { limit, interval, algorithm }, intervals: 6, load, balancing, network, ...(plan && { faults: plan }) }
}

describe('a cluster with a bucket', () => {
  it('knows no more than what was really allowed, and rejects nobody while there is room', async () => {
    await fc.assert(
      fc.asyncProperty(clusters, async (cluster) => {
        await expectSimulation(scenarioOf(cluster), ({ toldTooMuch, rejectedWithRoom }) => {
          expect(toldTooMuch).toBeLessThanOrEqual(1e-6)
          // After a lost reply, as in an outage, processes decide by their shares.
          if (cluster.faults === undefined && cluster.loss === 0) expect(rejectedWithRoom).toBe(0)
        })
      }),
      { numRuns: 20 },
    )
  })

  it.each([4.05, 4.3, 4.35, 4.55])('knows of a full bucket though the store has lost its data, after %s intervals', async (at) => {
    const scenario: Scenario = {
      policy: { limit: 500, interval: 5_000, algorithm: tokenBucket() },
      nodes: 6,
      intervals: 3,
      load: poisson(3),
      faults: faults({ kind: 'data-loss', at }),
      seed: 2,
    }
    await expectSimulation(scenario, ({ debt, toldTooMuch }) => {
      expect(debt.max).toBeLessThan(0.1)
      expect(toldTooMuch).toBeLessThanOrEqual(1e-6)
    })
  })

  it('pays back what it allows too much', async () => {
    const scenario: Scenario = {
      policy: { limit: 500, interval: 5_000, algorithm: leakyBucket({ burst: 499, immediate: 499 }) },
      nodes: 6,
      intervals: 30,
      load: poisson(50),
      network: { latency: 50 },
      seed: 3,
    }
    await expectSimulation(scenario, ({ debt, allowed, intervals, policy }) => {
      expect(debt.max).toBeGreaterThan(0.1)
      expect(allowed / intervals / policy.limit).toBeLessThanOrEqual(1.02)
    })
  })
})
