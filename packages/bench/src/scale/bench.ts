import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Report, round } from '../harness/report.ts'
import type { ScaleInput, ScaleResult } from './program.ts'

const SIZES: Readonly<Record<ScaleInput['dimension'], readonly number[]>> = {
  keys: [1, 100, 10_000, 100_000],
  nodes: [1, 3, 10, 25, 50],
  policies: [1, 5, 20, 50, 200],
  spans: [2, 6, 20, 60],
}

/** The growth of costs with each dimension, in virtual time. The other dimensions stay at 1,000 keys, 3 processes, 1 policy and 6 spans. */
export const scale: Bench = async ({ quick }) => {
  const reports: Report[] = []
  for (const [dimension, sizes] of Object.entries(SIZES) as [ScaleInput['dimension'], readonly number[]][]) {
    const rows = []
    for (const size of quick ? sizes.slice(0, 3) : sizes) {
      const { decision, keyWrites, exchanges } = await runProgram<ScaleResult>('scale', { dimension, size })
      rows.push({
        [dimension]: size,
        'decision, CPU ns': round(decision),
        chart: '█'.repeat(Math.max(1, Math.round(6 * Math.log10(Math.max(1, decision / 30))))),
        'key-writes of a node in an interval': round(keyWrites),
        'exchanges of a node in an interval': round(exchanges),
      })
    }
    reports.push({ title: `Growth with ${dimension} (chart: logarithm of the decision's cost)`, rows })
  }
  return reports
}
