import { expect, it } from 'vitest'
import { runProgram } from './program.ts'

it('calls a limited API by three workers at its pace', { timeout: 180_000 }, async () => {
  const { output } = await runProgram('outgoing', [])
  const workers = [...output.matchAll(/^worker \d: (\d+) calls/gm)].map(([, calls]) => Number(calls))
  expect(workers, output).toHaveLength(3)
  const [, answered, rejected] = /answered (\d+) calls and rejected (\d+)/.exec(output) ?? []
  // None of them starves. How many calls a busy machine makes in this time is unknown.
  expect(Math.min(...workers), output).toBeGreaterThanOrEqual(Math.max(3, 0.4 * (Number(answered) / 3)))
  // On a machine that stands still for a while calls that left evenly arrive together; without a limit it would be thousands.
  expect(Number(rejected), output).toBeLessThanOrEqual(5)
})
