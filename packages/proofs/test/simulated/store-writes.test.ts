import { FROM_SOURCE, runProgram } from '@weir/bench/programs'
import type { WorkloadResult } from '@weir/bench/redis/program'
import { expect, test } from 'vitest'

// Time is virtual, so the result is the same on every machine.
test('keys at half of their limit are hardly ever written', async () => {
  const workload = 'half of the limit'
  const { requests, allowed, keyWrites } = await runProgram<WorkloadResult>('redis', { workload }, { execArgv: FROM_SOURCE })
  expect(allowed).toBe(requests)
  expect(keyWrites / requests).toBeLessThanOrEqual(0.02)
})

test('levels of many quiet keys take hardly any calls beside heartbeats', async () => {
  const workload = 'case study'
  const { requests, allowed, calls, keyWrites, central } = await runProgram<WorkloadResult>(
    'redis',
    { workload },
    { execArgv: FROM_SOURCE },
  )
  expect(allowed).toBe(requests)
  expect(calls / central).toBeLessThanOrEqual(0.005)
  expect(keyWrites / central).toBeLessThanOrEqual(0.005)
})
