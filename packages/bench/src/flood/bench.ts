import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { FloodResult } from './program.ts'

const OVERFLOWS = ['shared', 'allow', 'reject'] as const
const MAX_KEYS = 250_000

/** An endless flood of random keys, from a client that can choose the key by which it is counted. */
export const flood: Bench = async ({ rounds, quick }) => {
  const keys = quick ? 2_000_000 : 10_000_000
  const results = await inTurn(OVERFLOWS, Math.min(rounds, 3), (overflow) =>
    runProgram<FloodResult>('flood', { overflow, keys, maxKeys: MAX_KEYS }, { execArgv: ['--expose-gc'], patience: 600_000 }),
  )
  const of = (
    overflow: (typeof OVERFLOWS)[number],
    figure: 'full' | 'most' | 'least' | 'before' | 'during' | 'blocked' | 'forgotten' | 'allowed',
  ) => median((results.get(overflow) ?? []).map((result) => result[figure]))
  const growth = Math.max(...OVERFLOWS.map((overflow) => of(overflow, 'most') / of(overflow, 'full')))
  const delay = Math.max(...OVERFLOWS.map((overflow) => of(overflow, 'during') / of(overflow, 'before')))
  return [
    {
      title: `${keys.toLocaleString('en')} random keys, maxKeys ${MAX_KEYS.toLocaleString('en')}`,
      rows: OVERFLOWS.map((overflow) => ({
        overflow,
        'MiB when full': round(of(overflow, 'full')),
        'MiB from then on': `${round(of(overflow, 'least'))}–${round(of(overflow, 'most'))}`,
        'CPU of a turn with 2,000 decisions, 99 %, ms, before': round(of(overflow, 'before')),
        'in the flood': round(of(overflow, 'during')),
        'still blocked': `${round(100 * of(overflow, 'blocked'))} %`,
        'known keys forgotten': of(overflow, 'forgotten'),
        'new keys allowed at the end, of 1,000': of(overflow, 'allowed'),
        why: results.get(overflow)?.[0]?.reason ?? '',
      })),
      goals: [
        { what: 'memory after the table became full, times', value: growth, most: 1.1 },
        { what: 'CPU of a turn of the event loop, 99 %, times before', value: delay, most: 2 },
        { what: 'blocked keys that are no longer', value: 1 - Math.min(...OVERFLOWS.map((overflow) => of(overflow, 'blocked'))), most: 0 },
        { what: 'known keys forgotten', value: Math.max(...OVERFLOWS.map((overflow) => of(overflow, 'forgotten'))), most: 0 },
      ],
    },
  ]
}
