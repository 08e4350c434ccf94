import { expect, test } from 'vitest'
import { LateCounts } from '../../../src/algorithms/shared/late-counts.ts'
import type { Ordinal } from '../../../src/time/intervals.ts'

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
