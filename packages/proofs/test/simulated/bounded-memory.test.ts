import { describe, expect, it } from 'vitest'
import { CELL_NAMES, shares } from '../../src/soak/cells.ts'
import { FAULTS } from '../../src/soak/faulty-store.ts'
import { slopeOf } from '../../src/soak/heap.ts'
import { PROGRAMS } from '../../src/soak/programs.ts'
import type { SoakResult, SoakRun } from '../../src/soak/soak.ts'

const PATIENCE = 900_000

/** Cells of one test. Other suites use the CPU at the same time, but the test must end within its timeout. */
const AT_A_TIME = 6

const RUNS = FAULTS.flatMap((fault) => {
  const cells = CELL_NAMES.filter((cell) => fault === 'down' || shares(cell))
  const starts = Array.from({ length: Math.ceil(cells.length / AT_A_TIME) }, (_, i) => i * AT_A_TIME)
  return starts.map((start) => ({ fault, cells: cells.slice(start, start + AT_A_TIME) }))
})

describe('memory while the store fails', () => {
  it('is looked at in each cell', () => {
    expect(RUNS.flatMap(({ fault, cells }) => cells.map((cell) => [fault, cell]))).toHaveLength(
      FAULTS.length * CELL_NAMES.filter(shares).length + CELL_NAMES.filter((cell) => !shares(cell)).length,
    )
  })

  it.each(RUNS)(
    'is flat: $fault, $cells',
    async ({ fault, cells }) => {
      const runs = cells.map((cell): SoakRun => ({ cell, fault, intervals: 300, keys: 200 }))
      const text = await PROGRAMS.printed('soak', runs, { patience: PATIENCE })
      const results = text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as SoakResult)
      expect(results.map(({ cell }) => cell)).toEqual(cells)
      expect(results.filter(({ flat }) => !flat)).toEqual([])
    },
    PATIENCE,
  )

  it('is told apart from memory that grows', () => {
    const samples = (grows: number) =>
      Array.from({ length: 10 }, (_, i) => ({ interval: 20 * i, bytes: 1e6 + 20 * i * grows + (i % 2 === 0 ? 5_000 : -5_000) }))
    expect(slopeOf(samples(10_000))).toBeCloseTo(10_000, -3)
    expect(Math.abs(slopeOf(samples(0)))).toBeLessThan(100)
  })
})
