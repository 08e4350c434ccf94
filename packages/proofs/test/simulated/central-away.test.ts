import type { AwayInput, AwayResult } from '@weir/bench/away/program'
import { DEADLINE, LIMIT } from '@weir/bench/away/rule'
import { FROM_SOURCE, runProgram } from '@weir/bench/programs'
import { expect, test } from 'vitest'

// Time is virtual, so the result is the same on every machine.
function whileAway(input: AwayInput): Promise<AwayResult> {
  return runProgram<AwayResult>('away', input, { execArgv: FROM_SOURCE })
}

test('while the store hangs nodes that share traffic evenly allow the limit, and no request waits beyond the deadline', async () => {
  const { allowed, longest } = await whileAway({ failMode: 'share', parts: [0.25, 0.25, 0.25, 0.25] })
  // Shares may be fractions, which differ by at most a unit for each process.
  for (const units of allowed) expect(units).toBeLessThanOrEqual(LIMIT + 4)
  for (const units of allowed) expect(units).toBeGreaterThanOrEqual(LIMIT - 4)
  expect([allowed[0], allowed[4]]).toEqual([LIMIT, LIMIT])
  expect(longest).toBeLessThanOrEqual(DEADLINE)
})

test('a client that sticks to one node gets its part while the store hangs, and what it got counts afterwards', async () => {
  const { allowed } = await whileAway({ failMode: 'share', parts: [1, 0, 0, 0] })
  expect([allowed[0], allowed[2], allowed[3], allowed[4]]).toEqual([LIMIT, LIMIT / 4, LIMIT, LIMIT])
})
