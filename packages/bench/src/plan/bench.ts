import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bench } from '../harness/bench.ts'
import { runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import { type LogForm, writeLog } from './log.ts'
import type { PlanInput, PlanResult } from './program.ts'

const CLIENT = { name: 'client', key: 'ip', limit: 100, interval: '1m' }
const RULES: Readonly<Record<string, readonly object[]>> = {
  'one policy': [CLIENT],
  'three policies': [
    CLIENT,
    { name: 'all', key: 'all', limit: 10_000, interval: '1m' },
    { name: 'route', key: 'route', limit: 1_000, interval: '10s' },
  ],
}
const SITUATIONS: readonly (readonly [LogForm, keyof typeof RULES, number])[] = [
  ['combined', 'one policy', 1_000_000],
  ['combined', 'one policy', 5_000_000],
  ['gzip', 'one policy', 1_000_000],
  ['json', 'one policy', 1_000_000],
  ['combined', 'three policies', 1_000_000],
]

/** The speed at which `weir plan` replays an access log on three processes, and its memory. */
export const plan: Bench = async ({ quick }) => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-plan-'))
  const rows: Row[] = []
  const rates: number[] = []
  try {
    for (const [form, policies, most] of SITUATIONS) {
      const lines = quick ? most / 20 : most
      const log = join(folder, 'access.log')
      const rules = join(folder, 'rules.json')
      await writeLog(log, form, lines)
      writeFileSync(rules, JSON.stringify({ version: 1, policies: RULES[policies] }))
      const input: PlanInput = { log, rules }
      const { cpu, wall, memory, requests, rejected } = await runProgram<PlanResult>('plan', input, { patience: 1_800_000 })
      if (requests !== lines) throw new Error(`${requests} of ${lines} requests were replayed`)
      const rate = (lines / cpu) * 60_000
      rates.push(rate)
      rows.push({
        log: form,
        rules: policies,
        lines,
        MB: round(statSync(log).size / 1e6),
        rejected,
        's CPU': round(cpu / 1e3),
        's wall': round(wall / 1e3),
        'lines a minute of CPU': round(rate),
        'MB memory, at most': round(memory / 1e6),
      })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return [
    {
      title: 'A replay of access logs, three nodes',
      rows,
      goals: [{ what: '1,000,000 lines ÷ those a minute, one policy', value: 1e6 / Math.min(...rates.slice(0, -1)), most: 1 }],
    },
  ]
}
