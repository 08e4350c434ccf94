import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endOf, type Ordinal, ordinalAt, spanEnd, startOf } from '../../src/time/intervals.ts'

const whole = fc.integer({ min: 10, max: 100_000_000 })
const fraction = fc.integer({ min: 100, max: 10_000_000 }).map((tenths) => tenths / 10 + 0.3)
const interval = fc.oneof(whole, fraction, fc.constantFrom(10, 99.9, 250, 1_000, 60_000, 3_600_000, 86_400_000))
const spans = fc.oneof(fc.integer({ min: 2, max: 1_000 }), fc.constantFrom(2, 3, 6, 7))
const time = fc.double({ min: 1e12, max: 3e12, noNaN: true })

test('a time lies in its cell: from its start on, before its end', () => {
  fc.assert(
    fc.property(time, whole, (at, width) => {
      const ordinal = ordinalAt(at, width)
      expect(startOf(ordinal, width)).toBeLessThanOrEqual(at)
      expect(endOf(ordinal, width)).toBeGreaterThan(at)
      expect(endOf(ordinal, width)).toBe(startOf((ordinal + 1) as Ordinal, width))
    }),
  )
})

test('a time exactly at a boundary belongs to the cell that begins', () => {
  fc.assert(
    fc.property(time, whole, (at, width) => {
      const ordinal = Math.floor(at / width)
      expect(ordinalAt(ordinal * width, width)).toBe(ordinal)
      expect(ordinalAt(ordinal * width - 0.001, width)).toBe(ordinal - 1)
    }),
  )
})

test('the end of a span is later than the time, by no more than a span, and never beyond the interval', () => {
  fc.assert(
    fc.property(time, interval, spans, (at, length, parts) => {
      const end = spanEnd(at, length, parts)
      expect(end).toBeGreaterThan(at)
      expect(end - at).toBeLessThanOrEqual(length / parts + 0.01)
      expect(end).toBeLessThanOrEqual(endOf(ordinalAt(at, length), length))
    }),
  )
})

test('from one span end to the next there are exactly as many spans as wanted, and the last ends with the interval', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_000, max: 30_000 }), whole, spans, (ordinal, length, parts) => {
      const ends: number[] = []
      const last = (ordinal + 1) * length
      for (let at = ordinal * length; at < last; at = ends.at(-1) as number) ends.push(spanEnd(at, length, parts))
      expect(ends).toHaveLength(parts)
      expect(ends.at(-1)).toBe(last)
      // All spans have the same length, up to rounding.
      ends.forEach((end, i) => {
        expect(end - (ends[i - 1] ?? ordinal * length)).toBeCloseTo(length / parts, 1)
      })
    }),
    { numRuns: 50 },
  )
})

test('spans of a second, of a part of a second, and of parts that do not divide', () => {
  expect(spanEnd(60_000, 60_000, 6)).toBe(70_000)
  expect(spanEnd(69_999.9, 60_000, 6)).toBe(70_000)
  expect(spanEnd(70_000, 60_000, 6)).toBe(80_000)
  expect(spanEnd(1_000, 100, 4)).toBe(1_025)
  expect(spanEnd(100, 100, 3)).toBeCloseTo(133.33, 1)
  expect(spanEnd(199, 100, 3)).toBe(200)
})
