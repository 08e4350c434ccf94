import { expect, test } from 'vitest'
import { Batch } from '../src/batch.ts'
import type { Counter } from '../src/counter.ts'
import { DueKeys } from '../src/due-keys.ts'

function counter() {
  const undone: number[] = []
  const self: Pick<Counter, 'collect' | 'undue'> = {
    collect: (slot, _now, batch) => batch.add(self as Counter, slot, { policy: {} as never, key: String(slot), cells: [] }),
    undue: (slot) => undone.push(slot),
  }
  return { counter: self as Counter, undone }
}

/** The keys that are sent at `now`. */
function collected(keys: DueKeys, now: number, most = 200): number[] {
  const batch = new Batch(most)
  keys.collect(now, batch)
  return batch.entries.map(({ key }) => Number(key))
}

test('a key is sent when its time has come, not before', () => {
  const keys = new DueKeys()
  const { counter: one } = counter()
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
  const { counter: one } = counter()
  for (let slot = 0; slot < 5; slot++) keys.add(one, slot, 0)
  expect(collected(keys, 0, 3)).toEqual([0, 1, 2])
  expect(keys.waiting).toBe(true)
  expect(collected(keys, 0, 3)).toEqual([3, 4])
  expect(keys.waiting).toBe(false)
})

test('while the store is away none is sent; each is told, once', () => {
  const keys = new DueKeys()
  const [one, two] = [counter(), counter()]
  keys.add(one.counter, 1, 0)
  keys.add(two.counter, 2, 100)
  keys.drop()
  keys.drop()
  expect([one.undone, two.undone]).toEqual([[1], [2]])
  expect(collected(keys, 100)).toEqual([])
})
