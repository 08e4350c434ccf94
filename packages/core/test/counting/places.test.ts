import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Places } from '../../src/counting/bucket/places.ts'

const EACH = 100

/** Places for so many units that wait, of which the store has given `given` from `at` on. */
function places(wanted: number, given: number, at = 0): Places {
  const made = new Places()
  made.wanted = wanted
  made.first = Math.min(1, wanted)
  made.ask(given, 0)
  made.answer(at, 0)
  return made
}

test('units go one after another, and who takes the first ones leaves the next to those behind', () => {
  const made = places(3, 3, 1_000)
  expect([1, 2, 3, 4].map((units) => made.goesAt(units, EACH))).toEqual([1_100, 1_200, 1_300, Number.POSITIVE_INFINITY])
  made.take(1, EACH)
  expect(made.goesAt(1, EACH)).toBe(1_200)
  made.ask(1, 0)
  made.answer(5_000, 0)
  made.take(1.5, EACH)
  expect([0.5, 1, 1.5].map((units) => made.goesAt(units, EACH))).toEqual([1_300, 5_050, 5_100])
})

test('the last ones are given back when fewer wait', () => {
  const made = places(3, 3)
  made.wanted = 1
  expect(made.cut()).toBe(2)
  expect(made.units).toBe(1)
  expect(made.goesAt(1, EACH)).toBe(100)
  expect(made.cut()).toBe(0)
})

test('one ask is under way at a time, for a part of those that wait, and the next one before its places are used up', () => {
  const made = new Places()
  made.wanted = 80
  made.first = 1
  expect(made.missing(0, EACH)).toBe(10)
  made.ask(10, 0)
  expect(made.missing(0, EACH)).toBe(0)
  made.answer(0, 1)
  made.wanted = 81
  expect(made.missing(800, EACH)).toBe(0)
  expect(made.missing(900, EACH)).toBe(11)
})

test('as many are asked for as are used up during the ask, and no fewer than the first request costs', () => {
  const made = places(8, 1)
  made.take(1, EACH)
  made.ask(1, 0)
  made.answer(0, 500)
  made.take(1, EACH)
  made.wanted = 8
  expect(made.missing(0, EACH)).toBe(8)
  made.first = 3
  expect(places(0, 0).missing(0, EACH)).toBe(0)
  const expensive = new Places()
  expensive.wanted = 20
  expensive.first = 12
  expect(expensive.missing(0, EACH)).toBe(12)
})

test('whatever is asked for, taken and given back, places are neither lost nor made', () => {
  const step = fc.record({ units: fc.integer({ min: 1, max: 40 }).map((n) => n / 4), kind: fc.constantFrom('ask', 'take', 'cut') })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const made = new Places()
      let units = 0
      let at = 0
      for (const { kind, units: some } of steps) {
        if (kind === 'ask') {
          made.wanted = units + some
          made.ask(some, 0)
          made.answer((at += 10_000), 0)
          units += some
        } else if (kind === 'take') {
          if (some > units) continue
          made.take(some, EACH)
          units -= some
        } else {
          made.wanted = Math.max(0, units - some)
          expect(made.cut()).toBeCloseTo(units - made.wanted, 9)
          units = made.wanted
        }
        expect(made.units).toBeCloseTo(units, 9)
        if (units > 0) expect(made.goesAt(units, EACH)).toBeLessThan(Number.POSITIVE_INFINITY)
        expect(made.goesAt(units + 1, EACH)).toBe(Number.POSITIVE_INFINITY)
      }
    }),
  )
})
