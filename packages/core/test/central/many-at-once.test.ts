import { expect, test } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { allowed, CENTRAL, started } from '../support/central.ts'
import { type Node, type Scene, scene, seeded } from '../support/nodes.ts'

const ROUND_TRIP = 20

/** Makes all checks at once. Resolves with their decisions after `time` milliseconds. */
async function atOnce(it: Scene, checks: () => Promise<Decision>[], time: number): Promise<Decision[]> {
  const all = Promise.all(checks())
  await it.world.run(time)
  return await all
}

async function usedOf(it: Scene, node: Node, key: string): Promise<number | undefined> {
  const usage = node.usage(key)
  await it.world.run(2 * ROUND_TRIP)
  return (await usage)[0]?.used
}

test.each([
  [100, 60],
  [1_000, 60],
  [1_000, 10_000],
  [10_000, 60],
  [10_000, 4_321],
  [10_000, 1_000_000],
])('%i checks at once of a key that allows %i are decided by the store, exactly and with few calls', async (count, limit) => {
  const it = scene()
  it.store.roundTrip = ROUND_TRIP
  const node = it.node({ ...CENTRAL, limit, interval: 60_000, failMode: 'closed' })
  await started(it, node)
  const decisions = await atOnce(it, () => Array.from({ length: count }, () => node.checkAsync('k')), 49)
  expect(allowed(decisions)).toBe(Math.min(count, limit))
  expect(decisions.filter(({ allowed, reason }) => !allowed && reason !== 'limit')).toEqual([])
  for (const { allowed, retryAfterMs } of decisions) if (!allowed) expect(retryAfterMs).toBeGreaterThan(50_000)
  // Each request gets the remaining units as if it had been sent alone.
  const left = decisions.filter(({ allowed }) => allowed).map(({ remaining }) => remaining)
  expect(new Set(left)).toEqual(new Set(Array.from({ length: Math.min(count, limit) }, (_, i) => limit - 1 - i)))
  expect(it.store.decided.length).toBeLessThan(120)
  expect(await usedOf(it, node, 'k')).toBe(Math.min(count, limit))
  await it.close()
})

test.each([
  ['sliding window', slidingWindow()],
  ['sliding log', slidingLog()],
  ['token bucket', tokenBucket()],
])('a %s decides exactly about checks at once of several costs', async (_, algorithm) => {
  const random = seeded(5)
  const it = scene()
  it.store.roundTrip = ROUND_TRIP
  const node = it.node({ ...CENTRAL, algorithm, limit: 700, interval: 3_600_000, failMode: 'closed', storeTimeout: 1_000 })
  await started(it, node)
  const costs = Array.from({ length: 1_000 }, () => 1 + Math.floor(3 * random()))
  const decisions = await atOnce(it, () => costs.map((cost) => node.checkAsync('k', { cost })), 900)
  const counted = decisions.reduce((sum, { allowed }, i) => sum + (allowed ? (costs[i] as number) : 0), 0)
  expect(counted).toBeGreaterThanOrEqual(699)
  expect(counted).toBeLessThanOrEqual(700)
  expect(decisions.filter(({ reason }) => reason === 'storeDown')).toEqual([])
  await it.close()
})

test('checks at once of a leaky bucket are delayed one after another, at its pace', async () => {
  const it = scene()
  it.store.roundTrip = ROUND_TRIP
  const algorithm = leakyBucket({ burst: 199, immediate: 19 })
  const node = it.node({ ...CENTRAL, algorithm, limit: 1_000, interval: 10_000, failMode: 'closed' } as AnyPolicyOptions<never>)
  await started(it, node)
  const decisions = await atOnce(it, () => Array.from({ length: 100 }, () => node.checkAsync('k')), 49)
  const delays = decisions.map(({ delayMs: delay }) => delay).sort((a, b) => a - b)
  expect(delays.filter((delay) => delay === 0).length).toBeGreaterThanOrEqual(20)
  expect(delays.at(-1)).toBeGreaterThan(700)
  const waits = delays.filter((delay) => delay > 0)
  for (const [i, delay] of waits.entries()) if (i > 0) expect(delay - (waits[i - 1] as number)).toBeLessThanOrEqual(15 + ROUND_TRIP)
  await it.close()
})

test('checks at once of many keys that share one are decided by the store', async () => {
  const it = scene()
  it.store.roundTrip = ROUND_TRIP
  const all = { ...CENTRAL, interval: 60_000, failMode: 'closed' as const }
  const node = it.node([
    { ...all, name: 'each', limit: 2 },
    { ...all, name: 'all', limit: 700 },
  ])
  await started(it, node)
  const decide = (i: number) => adapterOf(node).decideAsync([`client ${i}`, 'all'], [1, 1])
  const decisions = await atOnce(it, () => Array.from({ length: 1_000 }, (_, i) => Promise.resolve(decide(i))), 49)
  expect(allowed(decisions)).toBe(700)
  await it.world.run(2_000)
  const usage = node.usage('all', { policy: 'all' })
  await it.world.run(2 * ROUND_TRIP)
  expect((await usage)[0]?.used).toBe(700)
  await it.close()
})

test.each(Array.from({ length: 12 }, (_, i) => i + 1))(
  'answers that are lost make no unit of checks at once count twice, and none pass beyond the limit (seed %i)',
  async (seed) => {
    const random = seeded(seed)
    const it = scene({ seed })
    it.store.roundTrip = ROUND_TRIP
    it.store.storeTimeout = 300
    const failMode = seed % 2 === 0 ? 'closed' : 'share'
    const limit = 1_500
    const node = it.node({ ...CENTRAL, limit, interval: 600_000, failMode, storeTimeout: 200 })
    await started(it, node)
    let passed = 0
    for (let round = 0; round < 6; round++) {
      const burst = Array.from({ length: 50 + Math.floor(400 * random()) }, () => node.checkAsync('k'))
      await it.world.run(Math.floor(45 * random()))
      it.store.health = random() < 0.5 ? 'mute' : 'hanging'
      await it.world.run(Math.floor(60 * random()))
      it.store.health = 'up'
      await it.world.run(2_500)
      passed += allowed(await Promise.all(burst))
      if (round % 2 === 1) expect(await usedOf(it, node, 'k')).toBe(passed)
    }
    expect(passed).toBeLessThanOrEqual(limit)
    expect(await usedOf(it, node, 'k')).toBe(passed)
    await it.close()
  },
)
