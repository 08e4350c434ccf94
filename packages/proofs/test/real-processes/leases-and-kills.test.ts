import { SEED } from '@weir/tooling/seed'
import { expect, test } from 'vitest'
import { killFailuresOf, killsWithLeases } from '../../src/chaos/kills.ts'

test('four processes that take quota ahead never allow more than the limit at five times of it, though one is killed in each interval', async () => {
  const result = await killsWithLeases({ seed: SEED, intervals: 5 })
  expect(killFailuresOf(result), `pnpm chaos --leases --seed ${SEED}`).toEqual([])
  expect(result.kills).toBe(5)
  // The leases of a killed process are lost until the interval ends. They are at most its part of the remaining quota.
  const whole = result.allowed.slice(1, -1)
  expect(whole.length).toBeGreaterThan(3)
  expect(whole.reduce((sum, units) => sum + units, 0)).toBeGreaterThan((result.limit * whole.length) / 2)
}, 120_000)
