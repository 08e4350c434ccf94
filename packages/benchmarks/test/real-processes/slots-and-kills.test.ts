import { expect, test } from 'vitest'
import { killsWithSlots, slotFailuresOf } from '../../src/chaos/slot-kills.ts'

test('four processes never have more requests in flight than there are slots, and what killed ones held is free again', async () => {
  const seed = Date.now() % 100_000
  const result = await killsWithSlots({ seed, kills: 4 })
  expect(slotFailuresOf(result), `pnpm chaos --slots --seed ${seed}`).toEqual([])
  expect(result.kills).toBe(4)
}, 120_000)
