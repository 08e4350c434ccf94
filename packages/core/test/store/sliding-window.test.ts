import { describe, expect, test } from 'vitest'
import type { Cell, StorePolicy } from '../../src/store/contract.ts'
import { newestOf, visibleCells, windowUnits } from '../../src/store/shapes/sliding.ts'
import type { Ordinal } from '../../src/time/intervals.ts'

/** Windows of three cells. */
const policy: StorePolicy = { id: 'p', width: 1_000, cells: 3, limit: 100, hot: 50, ttl: 6_000 }

const cell = (ordinal: number, taken: number, given = 0): Cell => ({ ordinal: ordinal as Ordinal, taken, given })
const shown = (cells: readonly Cell[], newest: number, now: number) =>
  visibleCells(cells, newest as Ordinal, policy, now).map(({ ordinal }) => ordinal)
const units = (cells: readonly Cell[], newest: number, now: number) => windowUnits(cells, newest as Ordinal, policy, now)

describe('a sliding window', () => {
  const cells = [cell(5, 1), cell(6, 2), cell(7, 4, 1), cell(8, 8), cell(9, 0)]

  test('shows the cells of the window and later ones, except empty ones', () => {
    expect(shown(cells, 8, 8_500)).toEqual([6, 7, 8])
    expect(shown(cells, 7, 8_500)).toEqual([5, 6, 7, 8])
    expect(shown(cells, 9, 9_500)).toEqual([7, 8])
  })

  test('shows no cells from the future, except to a process whose clock is ahead too', () => {
    expect(shown(cells, 6, 7_500)).toEqual([5, 6, 7])
    expect(shown(cells, 8, 7_500)).toEqual([6, 7, 8])
  })

  test('ends with its newest cell, even for a late write to an older one', () => {
    expect(units(cells, 8, 8_500)).toBe(2 + 3 + 8)
    expect(units(cells, 6, 8_500)).toBe(2 + 3 + 8)
    expect(units(cells, 6, 7_500)).toBe(1 + 2 + 3)
    expect(units([], 6, 7_500)).toBe(0)
  })

  test('finds its newest cell in any order', () => {
    expect(newestOf([cell(7, 1), cell(9, 1), cell(8, 1)])).toBe(9)
  })
})
