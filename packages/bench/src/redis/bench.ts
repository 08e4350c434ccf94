import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import type { WorkloadInput, WorkloadResult } from './program.ts'

const MOST = {
  'half of the limit': 0.01,
  'long tail': 0.05,
  'case study': Number.POSITIVE_INFINITY,
  'case study, few heavy users': Number.POSITIVE_INFINITY,
} as const

/** The number of key writes, in virtual time. `bench sync` measures the cost of a key write for Redis. */
export const redis: Bench = async () => {
  const rows: Row[] = []
  const goals: { what: string; value: number; most: number }[] = []
  for (const workload of Object.keys(MOST) as WorkloadInput['workload'][]) {
    const { requests, allowed, keyWrites, calls, central } = await runProgram<WorkloadResult>('redis', { workload })
    const perRequest = keyWrites / requests
    const fewer = 1 - calls / central
    rows.push({
      workload,
      requests,
      allowed,
      'key-writes': keyWrites,
      'for each request': round(perRequest),
      'calls of Redis': calls,
      'one central counter would take': central,
      'fewer operations': `${(100 * fewer).toFixed(2)} %`,
      'fewer, by key-writes': `${(100 * (1 - keyWrites / central)).toFixed(2)} %`,
    })
    if (MOST[workload] < Number.POSITIVE_INFINITY)
      goals.push({ what: `${workload}: key-writes for each request`, value: perRequest, most: MOST[workload] })
    else if (workload === 'case study')
      goals.push({ what: `${workload}: operations, as part of those of one central counter`, value: 1 - fewer, most: 0.005 })
  }
  return [{ title: 'What is written to the store', rows, goals }]
}
