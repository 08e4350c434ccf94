import { expect, test } from 'vitest'
import { failuresOf, soak } from '../src/chaos/soak.ts'

test('a minute of faults by chance leaves nothing behind', { timeout: 240_000 }, async () => {
  const seed = Date.now() % 100_000
  const result = await soak(1, seed)
  expect(failuresOf(result), `pnpm chaos --minutes 1 --seed ${seed}: ${result.faults.join(', ')}`).toEqual([])
  expect(result.faults.length).toBeGreaterThan(3)
  expect(result.verdict.sent).toBeGreaterThan(1_000)
})
