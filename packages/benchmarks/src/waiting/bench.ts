import type { Coordination } from '@weir/core'
import { RedisServer } from '@weir/tooling/redis-servers'
import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Goal, type Report, type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import { CONTENDERS } from './contenders.ts'
import type { CostInput, CostResult } from './cost.ts'
import type { PaceInput, PaceResult } from './pace.ts'

/** Requests a second that are allowed. */
const LIMIT = 10
/** Processes need some time to start, and to hear of each other; milliseconds. */
const HEAD_START = 6_000

/** What it costs to wait for one's turn, in a flood, and how well processes keep a limit that they wait for together. */
export const waiting: Bench = async ({ rounds, quick }) => [await cost(rounds, quick ? 100_000 : 1_000_000), await pace(quick)]

async function cost(rounds: number, requests: number): Promise<Report> {
  const inputs: readonly CostInput[] = [
    ...CONTENDERS.map((contender) => ({ contender, requests, limit: requests / 4, keys: 1 })),
    { contender: 'weir', requests: 100_000, limit: 1, keys: 100_000 },
  ]
  const results = await inTurn(inputs, rounds, (input) => runProgram<CostResult>('waiting/cost', input, { execArgv: ['--expose-gc'] }))
  const of = (figure: keyof CostResult) => inputs.map((input) => median((results.get(input) as CostResult[]).map((one) => one[figure])))
  const [cpu, bytes] = [of('cpu'), of('bytes')]
  const [weir, throttle] = cpu as [number, number]
  return {
    title: 'Requests that wait, all made at once',
    rows: inputs.map(({ contender, keys, requests }, i) => ({
      contender,
      requests,
      keys,
      'CPU for each, µs': keys === 1 ? round(cpu[i] as number) : '',
      'bytes for each': round(bytes[i] as number),
    })),
    goals: [
      { what: "CPU for a request, times p-throttle's", value: weir / throttle, most: 3 },
      { what: 'bytes for a key that waits', value: bytes.at(-1) as number, most: 1024 },
    ],
  }
}

async function pace(quick: boolean): Promise<Report> {
  const rows: Row[] = []
  const goals: Goal[] = []
  const during = quick ? 5_000 : 15_000
  for (const coordination of ['leases', 'central', 'background'] as const) {
    for (const processes of [1, 3, 12]) {
      const seconds = await counts(coordination, processes, during)
      const most = Math.max(...seconds)
      const went = seconds.reduce((sum, count) => sum + count, 0) / seconds.length
      rows.push({ coordination, processes, 'most in a second of the clock': most, 'went, part of the limit': round(went / LIMIT) })
      if (coordination !== 'background')
        goals.push({ what: `${coordination}, ${processes} processes, a second of the clock`, value: most, most: LIMIT })
      goals.push({
        what: `${coordination}, ${processes} processes, part of the limit that was not used`,
        value: 1 - went / LIMIT,
        most: 0.02,
      })
    }
  }
  return { title: `Processes that wait for ${LIMIT} requests a second together, with a real Redis`, rows, goals }
}

/** Requests that went in each whole second of the clock. */
async function counts(coordination: Coordination, processes: number, during: number): Promise<number[]> {
  const server = await RedisServer.start()
  try {
    // In the middle of a second: processes whose timers are late count in the right one.
    const from = 1_000 * Math.ceil((Date.now() + HEAD_START) / 1_000) - 5
    const input: PaceInput = { port: server.port, coordination, limit: LIMIT, from, during: during + 5 }
    const results = await Promise.all(Array.from({ length: processes }, () => runProgram<PaceResult>('waiting/pace', input)))
    const seconds = new Map<number, number>()
    for (const time of results.flatMap(({ times }) => times)) {
      const second = Math.floor(time / 1_000)
      seconds.set(second, (seconds.get(second) ?? 0) + 1)
    }
    const first = Math.ceil(from / 1_000)
    return Array.from({ length: during / 1_000 }, (_, i) => seconds.get(first + i) ?? 0)
  } finally {
    await server.stop()
  }
}
