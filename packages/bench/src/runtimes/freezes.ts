import { RedisServer } from '@weir/tooling/redis-servers'
import type { BenchOptions } from '../harness/bench.ts'
import type { Goal, Report, Row } from '../harness/report.ts'
import { percentile } from '../harness/statistics.ts'
import { type FleetResult, runFleet } from './fleet.ts'

const LIMIT = 100
/** The interval, in milliseconds. */
const INTERVAL = 10_000
const PROCESSES = 50
/** Seconds after which Redis closes idle connections. */
const IDLE = 2

/** A way to share a limit, and the most that frozen processes may allow of it, by load. */
interface Form {
  readonly name: string
  readonly coordination: 'local' | 'background' | 'periodic' | 'leased' | 'central'
  readonly afterFreeze: 'sync' | 'continue'
  readonly most: Readonly<Record<string, number>>
}

const FORMS: readonly Form[] = [
  // The least time that a freeze costs: no request depends on the store.
  { name: 'local', coordination: 'local', afterFreeze: 'continue', most: {} },
  { name: 'sync', coordination: 'background', afterFreeze: 'sync', most: { '2': 103, '10': 105 } },
  { name: 'continue', coordination: 'background', afterFreeze: 'continue', most: {} },
  { name: 'periodic', coordination: 'periodic', afterFreeze: 'continue', most: {} },
  { name: 'leased', coordination: 'leased', afterFreeze: 'continue', most: { '2': LIMIT, '10': LIMIT } },
  { name: 'central', coordination: 'central', afterFreeze: 'continue', most: { '2': LIMIT, '10': LIMIT } },
]
const LOADS = [0.9, 2, 10] as const

/** Processes that a platform freezes between their requests: what they allow, and how long their requests take. */
export async function freezes({ quick, rounds, only = [] }: BenchOptions): Promise<readonly Report[]> {
  const server = await RedisServer.start()
  const chosen = FORMS.filter(({ name }) => only.includes(name))
  const rows: Row[] = []
  const goals: Goal[] = []
  try {
    for (const closes of [false, true]) {
      await server.command('CONFIG', 'SET', 'timeout', String(closes ? IDLE : 0))
      for (const { name, most, ...form } of chosen.length > 0 ? chosen : FORMS) {
        for (const times of LOADS) {
          const run = async (frozen: boolean): Promise<FleetResult> => {
            await server.command('FLUSHALL')
            return runFleet({
              ...form,
              place: { kind: 'redis', url: server.url },
              limit: LIMIT,
              interval: INTERVAL,
              processes: quick ? 10 : PROCESSES,
              times,
              intervals: quick ? 1 : rounds,
              frozen,
            })
          }
          const result = await run(true)
          const awake = await run(false)
          const [p50, p99] = [0.5, 0.99].map((part) => percentile(result.latencies, part)) as [number, number]
          const [p50Awake, p99Awake] = [0.5, 0.99].map((part) => percentile(awake.latencies, part)) as [number, number]
          const wrong = times < 1 ? result.rejected.reduce((sum, count) => sum + count, 0) : 0
          const row = `${name}, ×${times}${closes ? ', connections closed' : ''}`
          rows.push({
            form: name,
            load: `×${times}`,
            'idle connections': closes ? `closed after ${IDLE} s` : 'kept',
            allowed: result.allowed.join(', '),
            'never frozen': awake.allowed.join(', '),
            'p50, ms': p50.toFixed(1),
            'p99, ms': p99.toFixed(1),
            'never frozen, p50': p50Awake.toFixed(1),
            'never frozen, p99': p99Awake.toFixed(1),
            storeDown: result.storeDown.length,
            syncFailed: result.syncFailed,
          })
          if (form.coordination === 'local') continue
          const allowed = most[times]
          if (allowed !== undefined) goals.push({ what: `${row}: allowed of ${LIMIT}`, value: Math.max(...result.allowed), most: allowed })
          if (times < 1) goals.push({ what: `${row}: wrong rejections`, value: wrong, most: 0 })
          goals.push({ what: `${row}: storeDown events`, value: result.storeDown.length, most: 0 })
          goals.push({ what: `${row}: p99 beyond the same processes never frozen, ms`, value: p99 - p99Awake, most: 10 })
        }
      }
    }
  } finally {
    await server.stop()
  }
  return [{ title: `${quick ? 10 : PROCESSES} processes, frozen between requests, limit ${LIMIT} per ${INTERVAL / 1_000} s`, rows, goals }]
}
