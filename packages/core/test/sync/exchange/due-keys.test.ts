import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Batch } from '../../../src/counting/batch.ts'
import type { CountsSynced } from '../../../src/counting/site.ts'
import { DueKeys } from '../../../src/sync/exchange/due-keys.ts'

function meter() {
  const undone: number[] = []
  const self: Pick<CountsSynced, 'collect' | 'undue'> = {
    collect: (slot, _now, batch) => batch.add(self as CountsSynced, slot, { policy: {} as never, key: String(slot), cells: [] }),
    undue: (slot) => undone.push(slot),
  }
  return { meter: self as CountsSynced, undone }
}

/** The keys that are sent at `now`. */
function collected(keys: DueKeys, now: number, most = 200): number[] {
  const batch = new Batch(most)
  keys.collect(now, batch)
  return batch.entries.map(({ key }) => Number(key))
}

test('a key is sent when its time has come, not before', () => {
  const keys = new DueKeys()
  const { meter: one } = meter()
  keys.add(one, 1, 10)
  keys.add(one, 2, 5)
  expect(keys.next).toBe(5)
  expect(collected(keys, 5)).toEqual([2])
  expect(keys.next).toBe(10)
  expect(collected(keys, 9)).toEqual([])
  expect(collected(keys, 10)).toEqual([1])
  expect(keys.next).toBe(Number.POSITIVE_INFINITY)
})

test('what finds no room in a batch goes with the next one, in its turn', () => {
  const keys = new DueKeys()
  const { meter: one } = meter()
  for (let slot = 0; slot < 5; slot++) keys.add(one, slot, 0)
  expect(collected(keys, 0, 3)).toEqual([0, 1, 2])
  expect(keys.waiting).toBe(true)
  expect(collected(keys, 0, 3)).toEqual([3, 4])
  expect(keys.waiting).toBe(false)
})

test('while the store is away none is sent; each is told, once', () => {
  const keys = new DueKeys()
  const [one, two] = [meter(), meter()]
  keys.add(one.meter, 1, 0)
  keys.add(two.meter, 2, 100)
  keys.drop()
  keys.drop()
  expect([one.undone, two.undone]).toEqual([[1], [2]])
  expect(collected(keys, 100)).toEqual([])
})

test('whatever the order of asking and sending, each key travels once, when it is due, and soon after it', () => {
  const anyStep = fc.oneof(
    fc.record({ add: fc.array(fc.integer({ min: -5, max: 20 }), { maxLength: 8 }) }),
    fc.record({ collect: fc.integer({ min: 0, max: 5 }), most: fc.integer({ min: 0, max: 4 }) }),
  )
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
      const due = new DueKeys()
      const { meter: one } = meter()
      const waiting = new Map<number, number>()
      let now = 0
      let slots = 0
      const collect = (most: number): void => {
        const batch = new Batch(most)
        due.collect(now, batch)
        for (const slot of batch.tickets as number[]) {
          expect(waiting.get(slot)).toBeLessThanOrEqual(now + 0.5)
          waiting.delete(slot)
        }
        const left = [...waiting.values()].filter((at) => at <= now + 0.5)
        if (left.length > 0) expect(batch.full).toBe(true)
        expect(due.waiting).toBe(waiting.size > 0)
        expect(due.next).toBeLessThanOrEqual(Math.min(...waiting.values()))
      }
      for (const step of steps) {
        if ('add' in step) {
          for (const after of step.add) {
            waiting.set(slots, now + after)
            due.add(one, slots++, now + after)
          }
        } else {
          now += step.collect
          collect(step.most)
        }
      }
      now += 100
      collect(Number.POSITIVE_INFINITY)
      expect([waiting.size, due.next]).toEqual([0, Number.POSITIVE_INFINITY])
    }),
  )
})
