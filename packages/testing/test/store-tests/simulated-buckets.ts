import { type Store, systemClock, tokenBucket } from '@weir/core'
import type { SyncReply, SyncRequest } from '@weir/core/sync'
import { expect } from 'vitest'
import { bursts, crashes, doubling, outages, poisson, type Scenario, simulate, squareWave, together, zipf } from '../../src/index.ts'

const policy = { limit: 1000, interval: 10_000, algorithm: tokenBucket() }

/** One scenario of each kind in which `pnpm accuracy` measures buckets. */
export const SCENARIOS: Readonly<Record<string, Partial<Scenario>>> = {
  'below the limit': { load: poisson(0.9), balancing: zipf() },
  'twice the limit': {},
  'a flood': { load: poisson(100), intervals: 1 },
  'bursts that fit': { load: together(poisson(0.8), bursts({ size: 800, every: 2.2, phase: 0.37 })) },
  surges: { load: squareWave({ low: 0.5, high: 10, period: 2.1, duty: 0.3 }), balancing: zipf() },
  'far from the store': { load: poisson(10), network: { latency: 50 } },
  'a small burst': { policy: { ...policy, algorithm: tokenBucket({ burst: 100 }) } },
  'no more than some debt': {
    load: poisson(20),
    network: { latency: 50 },
    policy: { ...policy, algorithm: tokenBucket({ maxDebt: 200 }) },
  },
  soft: { policy: { ...policy, algorithm: tokenBucket({ earlyDrop: true }) }, shortcut: false },
  'messages lost and doubled': { network: { loss: 0.05, duplication: 0.2 } },
  'nodes that crash': { faults: crashes },
  'nodes doubled': { faults: doubling(1) },
  'the store away': { faults: outages({ length: 0.7, pause: 0.8 }) },
}

/** Checks that a store replies to the syncs of a simulated cluster like the simulated store. @throws the difference */
export async function answersAsSimulated(store: Store, scenario: Partial<Scenario>): Promise<void> {
  const log: { readonly nodeId: string; readonly request: SyncRequest; readonly reply: SyncReply; readonly time: number }[] = []
  await simulate({
    policy,
    nodes: 6,
    intervals: 2,
    warmup: 1,
    load: poisson(2),
    seed: 7,
    ...scenario,
    handled: (nodeId, request, reply, time) => {
      // A request that reports its time is handled by that time, even if it arrives later.
      if (request.entries.length > 0) log.push({ nodeId, request, reply, time: request.time ?? time })
    },
  })
  expect(log.length).toBeGreaterThan(20)
  // The store follows the reported time plus the time since then, which is always zero here.
  const clock = { ...systemClock, monotonic: () => 0 }
  const connections = new Map<string, ReturnType<typeof store.open>>()
  let differs = 0
  for (const { nodeId, request, reply, time } of log) {
    let connection = connections.get(nodeId)
    if (connection === undefined) connections.set(nodeId, (connection = store.open({ id: nodeId, clock, announced: () => {} })))
    const { results } = await connection.sync({ time, entries: request.entries, blocks: [] })
    for (const [place, result] of reply.results.entries()) {
      const [wanted, actual] = [result?.cells[0], results[place]?.cells[0]]
      expect(actual).toEqual({ ...wanted, level: expect.any(Number) })
      differs = Math.max(differs, Math.abs((actual?.level ?? Number.NaN) - (wanted?.level ?? 0)))
    }
  }
  expect(differs).toBeLessThanOrEqual(1e-6)
  await Promise.all([...connections.values()].map((connection) => connection.close()))
}
