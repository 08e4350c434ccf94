import { SEED } from '@weir/tooling/seed'
import { expect, test } from 'vitest'
import { crashing } from '../../src/accuracy/budgets/crashes.ts'
import { verdictOf } from '../../src/accuracy/goal.ts'

test.each(['leased', 'central'] as const)(
  '%s: no unit of a reservation leaks, whatever its end, while processes crash',
  async (coordination) => {
    const figures = await crashing(coordination, 6_000, SEED)
    expect(figures.filter((figure) => verdictOf(figure) !== 'holds')).toEqual([])
  },
)
