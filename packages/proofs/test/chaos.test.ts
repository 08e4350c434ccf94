import { SEED } from '@weir/tooling/seed'
import { expect, test } from 'vitest'
import { failuresOf, soak } from '../src/chaos/soak.ts'

test('a minute of faults by chance leaves nothing behind', { timeout: 240_000 }, async () => {
  const result = await soak(1, SEED)
  expect(failuresOf(result), `pnpm chaos --minutes 1 --seed ${SEED}: ${result.faults.join(', ')}`).toEqual([])
  expect(result.faults.length).toBeGreaterThan(3)
  expect(result.verdict.sent).toBeGreaterThan(1_000)
})
