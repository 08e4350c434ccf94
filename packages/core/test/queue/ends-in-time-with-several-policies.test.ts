import { seeds } from '@weir/tooling/seed'
import { expect, test, vi } from 'vitest'
import type { PolicyDecision } from '../../src/decide/decision.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { slidingWindow, tokenBucket } from '../../src/index.ts'
import { type Chance, disturb, expectEnded, expectPace, play } from '../support/queue-chaos.ts'
import { EPOCH } from '../support/world.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** One or two policies beside the policy that makes reservations. */
function beside(chance: Chance): PolicyOptions<never>[] {
  const made = (name: string): PolicyOptions<never> => {
    const coordination = chance.pick('central', 'central', 'background', 'local', 'leased')
    return {
      name,
      limit: chance.pick(5, 40, 1_000),
      interval: chance.pick(500, 1_000, 2_000),
      coordination,
      ...(coordination === 'central' && chance.of(0.3) && { algorithm: chance.pick(slidingWindow(), tokenBucket()) }),
      ...(chance.of(0.2) && { key: 'all' }),
      ...(chance.of(0.1) && { dryRun: true }),
    } as PolicyOptions<never>
  }
  return chance.of(0.5) ? [made('second')] : [made('second'), made('third')]
}

test.each([...seeds(8), 16, 141])(
  'while the store answers all end in time, and no window of the store or of a process has too much: seed %i',
  async (seed) => {
    const played = await play(seed, 3_000, () => ({}), undefined, beside)
    const { it, made, others, roundTrip } = played
    expectEnded(played, 4 * roundTrip + 60)
    expectPace(played, roundTrip)
    for (const { name, limit, interval, coordination, key: shared, algorithm, dryRun } of others) {
      const exact = coordination === 'central' || coordination === 'local'
      if (!exact || algorithm !== undefined || dryRun === true) continue
      const groups = new Map<string, number>()
      for (const { outcome, key, cost, node } of made) {
        if (outcome.decision?.allowed !== true) continue
        const part = outcome.decision.parts.find(({ policy }) => policy?.name === name) as PolicyDecision
        const { ordinal } = part.outcome
        const group = `${shared === 'all' ? '' : key} ${coordination === 'local' ? node : ''} ${ordinal}`
        groups.set(group, (groups.get(group) ?? 0) + cost)
        // It counts the request when it is allowed, not when it is reserved.
        const begun = ordinal * (interval as number) - EPOCH
        expect(outcome.at, name).toBeGreaterThanOrEqual(begun)
        expect(outcome.at, name).toBeLessThanOrEqual(begun + (interval as number) + roundTrip + 2)
      }
      for (const [group, units] of groups) expect(units, `${name}: ${group}`).toBeLessThanOrEqual(limit as number)
    }
    for (const { outcome } of made) if (outcome.decision?.allowed === true) expect(outcome.decision.parts).toHaveLength(1 + others.length)
    await it.close()
  },
)

test.each([...seeds(10), 435874423, 871819738, 111038698])('whatever happens meanwhile, all end in time: seed %i', async (seed) => {
  const played = await play(200 + seed, 3_000, (chance) => (chance.of(0.2) ? { cooldown: '500ms' } : {}), disturb, beside)
  expectEnded(played, 230)
  await played.it.close()
})
