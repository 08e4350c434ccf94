import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SlotMap } from '../../src/keys/slot-map.ts'

test('a slot has what was set last, until it is deleted, whatever the others have', () => {
  const slot = fc.oneof(fc.nat(600), fc.constantFrom(255, 256, 100_000, 1_000_000))
  fc.assert(
    fc.property(fc.array(fc.tuple(slot, fc.option(fc.nat(), { nil: undefined })), { maxLength: 200 }), (changes) => {
      const slots = new SlotMap<{ value: number }>()
      const expected = new Map<number, number>()
      for (const [slot, value] of changes) {
        if (value === undefined) {
          slots.delete(slot)
          expected.delete(slot)
        } else {
          slots.set(slot, { value })
          expected.set(slot, value)
        }
        for (const [other] of changes) expect(slots.get(other)?.value).toBe(expected.get(other))
      }
    }),
    { numRuns: 50 },
  )
})
