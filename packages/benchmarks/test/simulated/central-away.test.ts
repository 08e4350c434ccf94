import { expect, test } from 'vitest'
import type { AwayInput, AwayResult } from '../../src/away/program.ts'
import { DEADLINE, LIMIT } from '../../src/away/rule.ts'
import { FROM_SOURCE, runProgram } from '../../src/harness/programs.ts'

// In virtual time, so the same on every machine.
function whileAway(input: AwayInput): Promise<AwayResult> {
  return runProgram<AwayResult>('away', input, { execArgv: FROM_SOURCE })
}

test('while the store hangs nodes that share traffic evenly admit the limit, and no request waits beyond the deadline', async () => {
  const { admitted, longest } = await whileAway({ degraded: 'share', parts: [0.25, 0.25, 0.25, 0.25] })
  // A unit of each node at most, where shares do not come out even.
  for (const units of admitted) expect(units).toBeLessThanOrEqual(LIMIT + 4)
  for (const units of admitted) expect(units).toBeGreaterThanOrEqual(LIMIT - 4)
  expect([admitted[0], admitted[4]]).toEqual([LIMIT, LIMIT])
  expect(longest).toBeLessThanOrEqual(DEADLINE)
})

test('a client that sticks to one node gets its part while the store hangs, and what it got counts afterwards', async () => {
  const { admitted } = await whileAway({ degraded: 'share', parts: [1, 0, 0, 0] })
  expect([admitted[0], admitted[2], admitted[3], admitted[4]]).toEqual([LIMIT, LIMIT / 4, LIMIT, LIMIT])
})
