import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { RulesInput, RulesResult } from './program.ts'

/** The time for which a process is blocked while it applies a document. */
export const rules: Bench = async ({ rounds, quick }) => {
  const situations = (quick ? [100, 1_000] : [100, 1_000, 10_000, 50_000]).flatMap((overrides): RulesInput[] => [
    { form: 'json', overrides },
    { form: 'yaml', overrides },
  ])
  const results = await inTurn(situations, rounds, (situation) => runProgram<RulesResult>('rules', situation))
  const rows = situations.map((situation): Row => {
    const found = results.get(situation) as RulesResult[]
    const of = (part: keyof RulesResult): number => round(median(found.map((one) => one[part])))
    return {
      document: situation.form,
      overrides: situation.overrides,
      kB: round(of('bytes') / 1e3),
      'ms to parse': of('parse'),
      'ms to check': of('check'),
      'ms to swap': of('update'),
    }
  })
  return [{ title: 'A document of rules with limits of single keys', rows }]
}
