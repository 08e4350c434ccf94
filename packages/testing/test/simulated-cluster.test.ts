import { describe, expect, it } from 'vitest'
import { crashes, describeScenario, doubling, poisson, type Scenario, simulate, squareWave, sticky, uniform, zipf } from '../src/index.ts'
import { alone, central, exactClocks } from './limiters.ts'

const base: Scenario = {
  policy: { limit: 100, interval: 1000 },
  nodes: 4,
  intervals: 20,
  load: poisson(10),
  clocks: exactClocks,
  timeBlocks: true,
}

describe('figures of limiters that are known', () => {
  it('an exact counter neither overshoots nor rejects wrongly', async () => {
    const result = await simulate({ ...base, node: central() })
    expect(result.overshoot).toEqual({ count: 20, mean: 0, p95: 0, max: 0 })
    expect(result.falseRequests).toBe(0)
    expect(result.rejectedWithRoom).toBe(0)
    expect(result.allowedOfExact).toBe(1)
    expect(result.slowestBlock).toEqual({ count: 20, mean: 0, p95: 0, max: 0 })
  })

  it('an exact counter of intervals allows up to twice the limit around a boundary', async () => {
    const straddling = squareWave({ high: 20, low: 0, period: 2, duty: 0.1, phase: 0.95 })
    const result = await simulate({ ...base, node: central(), load: straddling })
    expect(result.overshoot.max).toBe(0)
    expect(result.worstWindow.max).toBeGreaterThan(0.9)
  })

  it('nodes that know nothing of each other allow the limit once each', async () => {
    const result = await simulate({ ...base, node: alone, load: poisson(100) })
    expect(result.overshoot).toEqual({ count: 20, mean: 3, p95: 3, max: 3 })
    expect(result.falseRequests).toBe(0)
    // The limit is first exceeded after a 100th of the interval. Processes close at about four 100ths.
    expect(result.block.mean).toBeGreaterThan(20)
    expect(result.block.mean).toBeLessThan(40)
  })

  it('nodes that are sent all of a key share nothing and need not', async () => {
    const result = await simulate({ ...base, node: alone, balancing: sticky })
    expect(result.overshoot.max).toBe(0)
  })

  it('a limiter that rejects everything is false, with room', async () => {
    const rejecting = { nodeId: 'no', check: () => ({ allowed: false, reason: 'limit', retryAfterMs: 5 }), close: async () => {} }
    const result = await simulate({ ...base, node: () => rejecting, load: poisson(0.5) })
    expect(result.falseIntervals).toBe(1)
    expect(result.falseRequests).toBe(1)
    expect(result.rejectedWithRoom).toBe(result.requests)
  })
})

describe('a run', () => {
  it('is the same to the last decision with the same seed, and another with another', async () => {
    const scenario = { ...base, node: alone, balancing: zipf(), faults: crashes }
    const [one, same, other] = [await simulate(scenario), await simulate(scenario), await simulate({ ...scenario, seed: 2 })]
    expect(same).toEqual(one)
    expect(other.digest).not.toBe(one.digest)
  })

  it('gives the same figures without the shortcut', async () => {
    for (const faults of [crashes, doubling()]) {
      const scenario = { ...base, node: alone, load: poisson(50), faults, policy: { limit: 100, interval: 1000, cooldown: 0 } }
      expect(await simulate({ ...scenario, shortcut: false })).toEqual(await simulate(scenario))
    }
  })

  it('fails when a node that has rejected allows while nothing but a little time has passed', async () => {
    let calls = 0
    const fickle = {
      nodeId: 'fickle',
      check: () =>
        ++calls % 2 === 1 ? { allowed: false, reason: 'limit', retryAfterMs: 1000 } : { allowed: true, reason: 'ok', retryAfterMs: 0 },
      close: async () => {},
    }
    await expect(simulate({ ...base, nodes: 1, node: () => fickle })).rejects.toThrow(/nothing changed since/)
  })

  it('asks with promises where requests may wait', async () => {
    const result = await simulate({ ...base, node: central(), waits: true })
    expect(result.overshoot.max).toBe(0)
    expect(result.allowedOfExact).toBe(1)
  })

  it('measures only keys and intervals that it is told to', async () => {
    const measured = (index: number) => index % 2 === 0
    const result = await simulate({ ...base, node: central(), measured, watch: ['key', 'never seen'] })
    expect(result.measured.map(({ index }) => index)).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
  })

  it('tells what it was', () => {
    expect(describeScenario({ ...base, balancing: uniform, faults: crashes, network: { latency: () => 1 } })).toBe(
      'seed 1, policy {"limit":100,"interval":1000}, nodes 4, intervals 2+20, load poisson x10, balancing uniform, ' +
        'network {"latency":"drawn"}, faults a crash per interval',
    )
  })

  it('handles a million requests in seconds', { timeout: 60_000 }, async () => {
    const policy = { limit: 100_000, interval: 10_000 }
    // CPU time is measured instead of real time, because other programs may run meanwhile.
    const started = process.cpuUsage()
    const result = await simulate({ ...base, node: central(), load: poisson(0.99), policy, intervals: 10, warmup: 0 })
    expect(result.requests).toBeGreaterThan(980_000)
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(20_000)
  })
})
