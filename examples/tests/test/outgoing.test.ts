import { expect, it } from 'vitest'
import { runProgram } from './program.ts'

it('calls a limited API by three workers at its pace', { timeout: 120_000 }, async () => {
  const { output } = await runProgram('outgoing', [])
  const workers = [...output.matchAll(/^worker \d: (\d+) calls/gm)].map(([, calls]) => Number(calls))
  expect(workers, output).toHaveLength(3)
  // Each worker gets its turns.
  expect(Math.min(...workers), output).toBeGreaterThanOrEqual(15)
  const [, answered, rejected] = /answered (\d+) calls and rejected (\d+)/.exec(output) ?? []
  expect(Number(answered), output).toBeGreaterThanOrEqual(80)
  // If the machine pauses, calls that were sent evenly arrive together. Without a limit, the API would reject thousands.
  expect(Number(rejected), output).toBeLessThanOrEqual(5)
})
