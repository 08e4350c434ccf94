import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { SnapshotInput, SnapshotResult } from './program.ts'

/** The cost of `snapshot()`, for any number of keys. */
export const snapshot: Bench = async ({ quick }) => {
  const situations: SnapshotInput[] = [
    { window: 'fixed', keys: 10_000, blocked: 0, calls: 60 },
    { window: 'fixed', keys: quick ? 100_000 : 1_000_000, blocked: 0, calls: 60 },
    { window: 'fixed', keys: quick ? 100_000 : 1_000_000, blocked: 10_000, calls: 60 },
    { window: 'fixed', keys: quick ? 100_000 : 1_000_000, blocked: 0, rejected: true, calls: 20 },
    { window: 'sliding', keys: quick ? 20_000 : 200_000, blocked: 0, calls: 60 },
  ]
  const rows: Row[] = []
  for (const situation of situations) {
    const { cpu, found } = await runProgram<SnapshotResult>('snapshot', situation, { execArgv: ['--max-old-space-size=4096'] })
    const { window, keys, blocked, rejected = false } = situation
    const warm = cpu.slice(cpu.length / 2)
    rows.push({
      window,
      keys,
      blocked,
      'all rejected': rejected ? 'yes' : 'no',
      'ms CPU, first call': round(cpu[0] as number),
      'ms CPU, later': round(median(warm)),
      'at most': round(Math.max(...warm)),
      'hottest ten found, after 60 calls': found,
    })
  }
  return [{ title: 'One snapshot', rows }]
}
