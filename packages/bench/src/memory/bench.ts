import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median, spread } from '../harness/statistics.ts'
import type { MemoryResult } from './program.ts'

const CONTENDERS = [
  'plain window',
  'weir',
  'weir, after they fell idle',
  "weir, fixedWindow({ start: 'first-request' })",
  'weir, slidingCounter()',
  'weir, tokenBucket()',
  'weir, tokenBucket({ warmUp })',
  'weir, leakyBucket()',
  'weir, slidingWindow()',
  'weir, slidingLog(), one request each',
  'weir, slidingLog(), ten requests each',
  'express-rate-limit',
  'rate-limiter-flexible',
]

/** Bytes for each key. */
export const memory: Bench = async ({ rounds, quick }) => {
  const keys = quick ? 200_000 : 1_000_000
  const contenders = quick ? CONTENDERS.slice(0, 3) : CONTENDERS
  const results = await inTurn(contenders, rounds, (contender) =>
    runProgram<MemoryResult>('memory', { contender, keys }, { execArgv: ['--expose-gc', '--max-old-space-size=4096'] }),
  )
  const of = (contender: string) => results.get(contender) ?? []
  return [
    {
      title: `Memory of ${keys.toLocaleString('en')} keys, bytes for each`,
      rows: contenders.map((contender) => {
        const total = spread(of(contender).map((result) => result.total))
        const left = of(contender)[0]?.left
        return {
          contender,
          'with the key string': round(total.median),
          'min–max': `${round(total.min)}–${round(total.max)}`,
          'beyond the string': round(median(of(contender).map(({ beyond }) => beyond))),
          'left when idle': left === undefined ? '' : round(left),
          'timers that hold the process': of(contender)[0]?.timers ?? '',
        }
      }),
      goals: [
        { what: 'bytes for each key', value: median(of('weir').map(({ total }) => total)), most: 130 },
        ...(quick
          ? []
          : [
              {
                what: 'bytes for each key of tokenBucket()',
                value: median(of('weir, tokenBucket()').map(({ total }) => total)),
                most: 140,
              },
            ]),
        { what: 'beyond the string', value: median(of('weir').map(({ beyond }) => beyond)), most: 80 },
        { what: 'left for each key after idling', value: median(of('weir, after they fell idle').map(({ left }) => left ?? 0)), most: 1 },
      ],
    },
  ]
}
