import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OwnCells } from '../../src/counting/bucket/own-cells.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

const cell = (ordinal: number, taken: number, given = 0) => ({ ordinal: ordinal as Ordinal, taken, given })

/** Two cells are sent as one, and nothing longer. */
const spans = { span: 100, group: 2, fine: 2, drain: 1 }
/** Each cell is sent alone. */
const apart = { span: 100, group: 1, fine: 1, drain: 1 }

function cellsOf(...units: readonly (readonly [ordinal: number, units: number])[]): OwnCells {
  const cells = new OwnCells()
  for (const [ordinal, taken] of units) cells.add(ordinal as Ordinal, taken, 0, spans)
  return cells
}

describe('own cells of a bucket', () => {
  test('units within a group of cells are sent as of its first one', () => {
    expect(cellsOf([10, 1], [11, 2], [12, 3], [15, 4]).toSend(false)).toEqual([cell(10, 3), cell(12, 3), cell(15, 4)])
  })

  test('where the bucket has not run out since, more of them are one', () => {
    const cells = new OwnCells()
    const add = (ordinal: number, level: number): void =>
      cells.add(ordinal as Ordinal, 3, level, { span: 100, group: 8, fine: 2, drain: 1 })
    add(10, 5)
    // At 10 the bucket had 8 units, of which at most 7 drain until 17, so the two cells join. At 18 it had 3, which may drain until 22.
    add(17, 1)
    add(18, 0)
    add(22, 2)
    expect(cells.toSend(false)).toEqual([cell(10, 6), cell(18, 3), cell(22, 3)])
  })

  test('of many that the store knows nothing of those become one by which little is lost', () => {
    const cells = new OwnCells()
    for (let ordinal = 0; ordinal < 100; ordinal += 2) cells.add(ordinal as Ordinal, 1, 0, apart)
    cells.add(100 as Ordinal, 50, 0, apart)
    const sent = cells.toSend(false)
    expect(sent.length).toBeLessThanOrEqual(12)
    expect(sent.at(-1)).toEqual(cell(100, 50))
    expect(sent.reduce((sum, { taken }) => sum + taken, 0)).toBe(100)
    // The newest cells are the finest.
    expect(sent.at(-2)?.ordinal).toBeGreaterThanOrEqual(90)
  })

  test('what is rejected is told beside what is allowed, and is no unit', () => {
    const cells = cellsOf([10, 2])
    cells.reject(11 as Ordinal, 5, 0, spans)
    cells.reject(30 as Ordinal, 1, 0, spans)
    const sent = cells.toSend(false)
    expect(sent).toEqual([
      { ...cell(10, 2), rejected: 5 },
      { ...cell(30, 0), rejected: 1 },
    ])
    expect([cells.unsent(), cells.own(), cells.levelUnsent(11, 1, 0, 1, false)]).toEqual([2, 2, 2])
    cells.acknowledge(sent)
    expect(cells.toSend(false)).toEqual([])
  })

  test('what the store has acknowledged is not sent again, unless it lost it', () => {
    const cells = cellsOf([10, 1], [12, 3])
    expect(cells.acknowledge([cell(10, 1), cell(12, 2)])).toBe(3)
    expect([cells.unsent(), cells.toSend(false), cells.toSend(true).length]).toEqual([1, [cell(12, 3)], 2])
    expect(cells.acknowledge([cell(12, 2)])).toBe(0)
    cells.forgetSent()
    expect([cells.unsent(), cells.unsentSince()]).toEqual([4, 10])
  })

  test('what is under way to the store may be in its level already', () => {
    const cells = cellsOf([10, 5], [12, 3])
    cells.toSend(false)
    cells.add(12 as Ordinal, 2, 0, spans)
    expect([false, true].map((surely) => cells.levelUnsent(14, 1, 1, 1, surely))).toEqual([6, 0])
    expect([false, true].map((surely) => cells.levelUnsent(12, 1, 1, 1, surely))).toEqual([8, 2])
  })

  test('refunds go to the cell that the units were taken in, and never beyond them', () => {
    const cells = cellsOf([10, 2], [12, 3])
    expect([cells.giveBack(11 as Ordinal, 5), cells.giveBack(9 as Ordinal, 1), cells.giveBack(12 as Ordinal, 1)]).toEqual([2, 0, 1])
    expect(cells.toSend(false)).toEqual([cell(10, 2, 2), cell(12, 3, 1)])
    expect([cells.own(), cells.givenUnsent()]).toEqual([2, true])
  })

  test('what has run out is forgotten, but not what the store is still to hear of', () => {
    const cells = cellsOf([10, 2], [12, 3], [14, 1])
    cells.acknowledge([cell(10, 2)])
    cells.trim(20 as Ordinal, true)
    expect(cells.toSend(true)).toEqual([cell(12, 3), cell(14, 1)])
    cells.trim(20 as Ordinal, false)
    expect(cells.oldest).toBe(undefined)
  })

  test('cells that the store may know keep their number, however many there are', () => {
    const cells = new OwnCells()
    for (let ordinal = 0; ordinal < 30; ordinal++) cells.add((2 * ordinal) as Ordinal, 1, 0, apart)
    const told = cells.toSend(false)
    for (let ordinal = 30; ordinal < 60; ordinal++) cells.add((2 * ordinal) as Ordinal, 1, 0, apart)
    cells.trim(0 as Ordinal, true)
    expect(cells.toSend(false).slice(0, told.length)).toEqual(told)
    expect(cells.unsent()).toBe(60)
    expect(cells.toSend(false).length).toBeLessThanOrEqual(told.length + 12)
  })

  test('a clock that was ahead: its units count in the running cell', () => {
    const cells = cellsOf([10, 2], [50, 3], [60, 1])
    cells.moveBack(12 as Ordinal)
    expect(cells.toSend(false)).toEqual([cell(10, 2), cell(12, 4)])
  })
})

test('a bucket that gets the units of two holds at least what both hold', () => {
  const units = fc.array(fc.record({ at: fc.nat(60), units: fc.integer({ min: 1, max: 9 }), mine: fc.boolean() }), { maxLength: 30 })
  fc.assert(
    fc.property(units, fc.integer({ min: 60, max: 90 }), fc.integer({ min: 1, max: 40 }), (list, now, limit) => {
      const level = (of: typeof list): number => {
        const cells = new OwnCells()
        for (const one of of) cells.add(one.at as Ordinal, one.units, 0, apart)
        return cells.levelUnsent(now, 1, limit, 10, false)
      }
      const sorted = list.toSorted((one, other) => one.at - other.at)
      const halves = level(sorted.filter(({ mine }) => mine)) + level(sorted.filter(({ mine }) => !mine))
      expect(halves).toBeLessThanOrEqual(level(sorted) + 1e-9)
    }),
    { numRuns: 1000 },
  )
})
