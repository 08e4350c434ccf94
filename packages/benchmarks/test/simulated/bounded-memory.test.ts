import { describe, expect, it } from 'vitest'
import { printed } from '../../src/harness/programs.ts'
import { CELL_NAMES, shares } from '../../src/soak/cells.ts'
import { FAULTS } from '../../src/soak/faulty-store.ts'
import { slopeOf } from '../../src/soak/heap.ts'
import type { SoakResult, SoakRun } from '../../src/soak/soak.ts'

const PATIENCE = 900_000

describe('memory while the store fails', () => {
  it.each(FAULTS)(
    'is flat in each cell: %s',
    async (fault) => {
      const cells = CELL_NAMES.filter((cell) => fault === 'down' || shares(cell))
      const runs = cells.map((cell): SoakRun => ({ cell, fault, intervals: 300, keys: 200 }))
      const text = await printed('soak', runs, { patience: PATIENCE })
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
