import { SEED } from '@weir/tooling/seed'
import { expect, test } from 'vitest'
import { killsWithSlots, slotFailuresOf } from '../../src/chaos/slot-kills.ts'

test('four processes never have more requests in flight than there are slots, and what killed ones held is free again', async () => {
  const result = await killsWithSlots({ seed: SEED, kills: 4 })
  expect(slotFailuresOf(result), `pnpm chaos --slots --seed ${SEED}`).toEqual([])
  expect(result.kills).toBe(4)
}, 120_000)
