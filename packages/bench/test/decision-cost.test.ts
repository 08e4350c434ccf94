import { expect, test } from 'vitest'
import type { BudgetsInput, BudgetsResult } from '../src/budgets/program.ts'
import type { DecisionInput, DecisionResult } from '../src/decision/program.ts'
import { FROM_SOURCE, runProgram } from '../src/harness/programs.ts'

// The margins are several times the measured values. A busy machine stays below them, so only a mistake on the hot path exceeds
// them.
test.each([
  ['allow', 'weir', 5],
  ['reject', 'weir', 5],
  ['allow', 'weir, three levels', 10],
  ['reject', 'weir, three levels', 14],
] as const)('a decision to %s costs a few times a plain window at most (%s)', { timeout: 120_000 }, async (outcome, contender, most) => {
  const input: DecisionInput = { contender, keys: 1000, strings: 'cached', outcome, slice: 50_000, slices: 15 }
  const { cpu, floorCpu, ratio } = await runProgram<DecisionResult>('decision', input, { execArgv: FROM_SOURCE })
  expect(Math.min(ratio, cpu / floorCpu)).toBeLessThan(most)
})

test('a reservation costs a few times a check at most', { timeout: 120_000 }, async () => {
  const input: BudgetsInput = { figure: 'time', keys: 1000, slice: 2_000, slices: 21 }
  const { ratio } = await runProgram<BudgetsResult>('budgets', input, { execArgv: FROM_SOURCE })
  expect(ratio).toBeLessThan(6)
})

test('a reservation allocates a decision as a check does, and its receipt with the costs', { timeout: 120_000 }, async () => {
  const input: BudgetsInput = { figure: 'bytes', keys: 1, slice: 20_000, slices: 9 }
  // Memory is large enough that nothing is collected between two readings.
  const memory = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']
  const { checkCosts, reserve } = await runProgram<BudgetsResult>('budgets', input, { execArgv: [...FROM_SOURCE, ...memory] })
  expect(reserve - checkCosts).toBeLessThan(400)
})
