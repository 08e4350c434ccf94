import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  crashes,
  doubling,
  expectSimulation,
  exponentialAbove,
  faults,
  moving,
  outages,
  poisson,
  restarts,
  roundRobin,
  type Scenario,
  simulate,
  sticky,
  uniform,
  zipf,
} from '../src/index.ts'

const base: Scenario = { policy: { limit: 200, interval: 2000 }, nodes: 6, intervals: 10, load: poisson(20) }

const everythingWrong: Partial<Scenario> = {
  network: { latency: exponentialAbove(0.3, 0.5), loss: 0.02, announcementLoss: 0.1, duplication: 0.05, reordering: 0.05 },
  storeTimeout: 100,
  clocks: (_place, random) => ({ offset: (random.next() - 0.5) * 4000, drift: (random.next() - 0.5) * 2e-4 }),
  faults: faults(
    { kind: 'outage', from: 3.2, until: 4.1 },
    { kind: 'outage', from: 5.5, until: 5.6, mode: 'hang' },
    { kind: 'slow-store', from: 6, until: 6.2, extra: 30 },
    { kind: 'data-loss', at: 6.5 },
    { kind: 'store-clock', at: 7.3, step: 150 },
    { kind: 'node-clock', at: 7.5, node: 2, step: -5000 },
    { kind: 'partition', from: 8, until: 8.4, node: 1 },
    { kind: 'silence', from: 8.5, until: 9 },
    { kind: 'stall', from: 9.1, until: 9.5, node: 3 },
    { kind: 'crash', at: 9.7, node: 4 },
    { kind: 'restart', at: 9.8, node: 5 },
    { kind: 'scale', at: 10.2, nodes: 9 },
    { kind: 'scale', at: 11.2, nodes: 4 },
  ),
}

describe('throttlers in a simulated cluster', () => {
  it('behave the same to the last decision with the same seed, whatever goes wrong', async () => {
    const scenario = { ...base, ...everythingWrong }
    const one = await simulate(scenario)
    expect(await simulate(scenario)).toEqual(one)
    expect((await simulate({ ...scenario, seed: 2 })).digest).not.toBe(one.digest)
    expect(one.store.failures).toBeGreaterThan(0)
  })

  it('give the same figures without the shortcut', async () => {
    for (const more of [{}, { faults: crashes }, { faults: doubling(2), balancing: zipf() }, everythingWrong, { balancing: moving() }]) {
      const scenario = { ...base, ...more }
      expect(await simulate({ ...scenario, shortcut: false })).toEqual(await simulate(scenario))
    }
  })

  it('give the same figures without the shortcut while they cool down', async () => {
    const scenario = { ...base, policy: { limit: 200, interval: 2000, cooldown: 3000 }, timeBlocks: true }
    const result = await simulate(scenario)
    expect(await simulate({ ...scenario, shortcut: false })).toEqual(result)
    expect(result.unblockSpread.count).toBeGreaterThan(2)
    expect(result.unblockSpread.max).toBeLessThanOrEqual(1.1)
  })

  it('one alone is exact', async () => {
    const result = await simulate({ ...base, nodes: 1, load: poisson(5) })
    expect(result.overshoot.max).toBe(0)
    expect(result.allowedOfExact).toBe(1)
  })

  it('overshoot a flood by no more than the bound', async () => {
    const result = await simulate({ ...base, intervals: 20 })
    expect(result.allowedOfExact).toBeGreaterThanOrEqual(1)
    // K/MAX + x·(RTT + spacing + announcement)/INTERVAL
    expect(result.overshoot.max).toBeLessThanOrEqual(6 / 200 + (20 * 3.5) / 2000)
  })

  it('never reject while there is room, over clusters, limits, spans, balancings, latencies and skews', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1_000_000 }),
          nodes: fc.integer({ min: 1, max: 12 }),
          limit: fc.integer({ min: 10, max: 300 }),
          interval: fc.integer({ min: 500, max: 5000 }),
          spans: fc.integer({ min: 2, max: 12 }),
          times: fc.constantFrom(0.3, 0.8, 1),
          latency: fc.constantFrom(0.1, 0.5, 5),
          balancing: fc.constantFrom(uniform, roundRobin, sticky, zipf(), moving()),
          plan: fc.constantFrom(undefined, restarts, crashes, doubling(2)),
        }),
        async ({ seed, nodes, limit, interval, spans, times, latency, balancing, plan }) => {
          const scenario: Scenario = {
            seed,
            nodes,
            policy: { limit, interval, spans },
            intervals: 5,
            load: poisson(times),
            balancing,
            network: { latency },
            ...(plan && { faults: plan }),
          }
          await expectSimulation(scenario, ({ rejectedWithRoom, falseRequests }) => {
            expect(rejectedWithRoom).toBe(0)
            expect(falseRequests).toBe(0)
          })
        },
      ),
      { numRuns: 25 },
    )
  })

  it('tell the store of what they allowed, and of no more', async () => {
    const result = await simulate({ ...base, nodes: 3, load: poisson(0.9), network: { duplication: 0.2, reordering: 0.2 }, intervals: 20 })
    for (const { stored, allowed } of result.measured) {
      expect(stored).toBeLessThanOrEqual(allowed)
      // A key far below its limit leaves some units unsent: a tenth of a process's share of the limit.
      expect(stored).toBeGreaterThanOrEqual(allowed - 20)
    }
  })

  it('are measured apart while the store is away', async () => {
    const result = await simulate({ ...base, faults: outages({ length: 1.5, pause: 3 }) })
    expect(result.measured.filter(({ outage }) => outage).map(({ index }) => index)).toEqual([3, 4, 7, 8])
    expect(result.store.failures).toBeGreaterThan(0)
  })
})
