import { expect, test } from 'vitest'
import { LateCounts } from '../../src/counting/late-counts.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

const at = (ordinal: number): Ordinal => ordinal as Ordinal

test('counts are taken one after the other, once each, and again when they come back', () => {
  const late = new LateCounts()
  const [a, b, c] = ['a', 'b', 'c'].map((key) => late.add(key, key, at(5), 1, 0))
  expect([late.take(), late.take()]).toEqual([a, b])
  if (a === undefined || b === undefined) throw new Error('nothing was added')
  late.again(a)
  late.finish(b, at(6))
  expect([late.take(), late.take(), late.take()]).toEqual([c, a, undefined])
  expect([late.find('b', at(5)), late.size]).toEqual([undefined, 2])
})

test('what was taken out, acknowledged, replaced or forgotten meanwhile is passed over', () => {
  const late = new LateCounts()
  for (const key of ['out', 'known', 'new']) late.add(key, key, at(5), 1, 0)
  late.add('old', 'old', at(3), 1, 0)
  late.remove('out', at(5))
  const known = late.find('known', at(5))
  if (known !== undefined) late.finish(known, at(6))
  const replacement = late.add('new', 'new', at(5), 2, 0)
  late.prune(at(5))
  expect([late.take(), late.take()]).toEqual([replacement, undefined])
  expect(late.has(at(3))).toBe(false)
})

test('what the store has is kept as long as its interval may go on', () => {
  const late = new LateCounts()
  const one = late.add('k', 'k', at(5), 1, 0)
  late.finish(one, at(5))
  expect(late.take()).toBeUndefined()
  expect(late.remove('k', at(5))).toBe(one)
})

test('counts of intervals that are no longer kept leave nothing that an exchange has to pass over', () => {
  const late = new LateCounts()
  for (let ordinal = 1; ordinal <= 200; ordinal++) {
    for (let key = 0; key < 100; key++) late.add(`${key}`, `${key}`, at(ordinal), 1, 0)
    late.prune(at(ordinal - 10))
  }
  expect(late.size).toBe(11 * 100)
  late.prune(at(200))
  let taken = 0
  for (; late.take() !== undefined; taken++);
  expect([taken, late.waiting]).toEqual([100, false])
})

test('an exchange that fails after its interval was dropped brings nothing back', () => {
  const late = new LateCounts()
  const one = late.add('k', 'k', at(1), 1, 0)
  expect(late.take()).toBe(one)
  late.prune(at(5))
  late.again(one)
  expect([late.take(), late.size, late.waiting]).toEqual([undefined, 0, false])
})

test('one turn passes over a bounded number of counts that were reset, and later turns over the rest', () => {
  const late = new LateCounts()
  for (let key = 0; key < 3_500; key++) late.add(`${key}`, `${key}`, at(1), 1, 0)
  const last = late.add('last', 'last', at(1), 1, 0)
  for (let key = 0; key < 3_500; key++) late.forget(`${key}`)
  const turns = [late.take(), late.take(), late.take(), late.take()]
  expect(turns).toEqual([undefined, undefined, undefined, last])
  expect(late.waiting).toBe(false)
})

test('beyond a number of them whole intervals go, the oldest first, but for the last one', () => {
  const late = new LateCounts()
  for (const ordinal of [2, 1, 3]) for (let key = 0; key < 10; key++) late.add(`${key}`, `${key}`, at(ordinal), 1, 0)
  late.limit(25)
  expect([1, 2, 3].map((ordinal) => late.has(at(ordinal)))).toEqual([false, true, true])
  late.limit(5)
  expect([1, 2, 3].map((ordinal) => late.has(at(ordinal)))).toEqual([false, false, true])
  expect(late.size).toBe(10)
})
