import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { WorstResult } from './program.ts'
import { REQUESTS, type WorstKind } from './requests.ts'

/** The cost of a decision, and of the rejection if there is one, for the worst request of each kind, compared with a normal one. */
export const worst: Bench = async ({ rounds, quick }) => {
  const kinds = Object.keys(REQUESTS) as WorstKind[]
  const results = await inTurn(kinds, rounds, (kind) => runProgram<WorstResult>('worst', { kind, slices: quick ? 15 : 61 }))
  const figures = [...results].map(([kind, list]) => ({
    kind,
    normal: median(list.map(({ normal }) => normal)),
    worst: median(list.map((result) => result.worst)),
    ratio: median(list.map((result) => result.worst / result.normal)),
  }))
  return [
    {
      title: 'The worst request of each kind: CPU of a decision, and of the answer where it is rejected',
      rows: figures.map(({ kind, normal, worst: most, ratio }) => ({
        'request, 15 KB': kind,
        'µs CPU': round(most),
        'a normal one beside it, µs': round(normal),
        times: round(ratio),
      })),
      goals: figures.map(({ kind, ratio }) => ({ what: `${kind}, times a normal one`, value: ratio, most: 10 })),
    },
  ]
}
