import { RedisServer } from '@weir/tooling/redis-servers'
import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Goal, type Report, type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import { cluster, type Measured, NODES } from './cluster.ts'
import { MIDDLEWARE, type MiddlewareName } from './contenders.ts'
import type { Kind } from './limit.ts'
import type { PairInput, PairResult } from './pair.ts'
import type { Phase } from './program.ts'

const STORES: Readonly<Record<MiddlewareName, Readonly<Record<Kind, string>>>> = {
  'express-rate-limit': { weir: 'Weir', redis: 'rate-limit-redis', memory: 'MemoryStore' },
  '@nestjs/throttler': { weir: 'Weir', redis: '@nest-lab/throttler-storage-redis', memory: 'ThrottlerStorageService' },
  '@fastify/rate-limit': { weir: 'Weir', redis: 'RedisStore', memory: 'LocalStore' },
  'better-auth': { weir: 'Weir', redis: '@better-auth/redis-storage', memory: 'memory' },
}
const NAMES = Object.keys(MIDDLEWARE) as MiddlewareName[]
const KINDS: readonly Kind[] = ['weir', 'redis', 'memory']

/** Requests per second of each process when commands are counted, and when requests are timed. */
const COUNTED = 1000
const TIMED = 200

/** The limit of which ten processes with memory stores allow ten times as much. */
const SHARED = 100
const FLOOD: Phase = { keys: 1, limit: SHARED, window: 4000, busy: 3000, requests: 3 * TIMED }

/** Weir's stores under the middleware of other libraries, beside the stores that these libraries have. */
export const compat: Bench = async ({ rounds, quick }) => {
  const timed = new Map<readonly [MiddlewareName, Kind], readonly Measured[]>()
  const phase = (keys: number): Phase => ({ keys, limit: 1_000_000, window: 60_000, busy: 1500, requests: 1.5 * TIMED })
  for (const name of NAMES.slice(0, quick ? 1 : undefined))
    for (const kind of KINDS) timed.set([name, kind], await cluster(name, kind, [phase(1), phase(1000)]))
  return [await commands(timed, quick), times(timed), await overshoot(), await pairs(rounds, quick)]
}

type Timed = ReadonlyMap<readonly [MiddlewareName, Kind], readonly Measured[]>

/** Whole windows of Weir. The stores that call Redis for each request send the same commands at any load. */
async function commands(timed: Timed, quick: boolean): Promise<Report> {
  const most = { window: quick ? 4000 : 30_000, busy: quick ? 3000 : 28_500 }
  const loads: Readonly<Record<string, Omit<Phase, 'requests' | 'limit'> & { readonly times: number }>> = {
    '1 key, half of its limit': { keys: 1, times: 0.5, window: 4000, busy: 3000 },
    '1,000 keys, a tenth of their limits': { keys: 1000, times: 0.1, window: 4000, busy: 3000 },
    '1,000 keys, half of their limits': { keys: 1000, times: 0.5, ...most },
  }
  const phases = Object.values(loads).map(({ keys, times, window, busy }): Phase => {
    const requests = (COUNTED * busy) / 1000
    return { keys, limit: Math.round((requests * NODES) / keys / times), window, busy, requests }
  })
  const ours = await cluster('express-rate-limit', 'weir', phases)
  const row = (store: string, load: string, { sent, all }: Measured): Row => ({
    store,
    load,
    'commands sent': round(sent),
    'with those of scripts': round(all),
  })
  const rows: Row[] = Object.keys(loads).map((load, at) =>
    row(`Weir, windows of ${(phases[at]?.window ?? 0) / 1000} s`, load, ours[at] as Measured),
  )
  const goals: Goal[] = []
  for (const [[name, kind], list] of timed) {
    if (kind !== 'redis') continue
    for (const [at, load] of ['1 key', '1,000 keys'].entries()) rows.push(row(STORES[name].redis, load, list[at] as Measured))
    if (name !== 'express-rate-limit') continue
    for (const [at, [load, { keys }]] of Object.entries(loads).entries()) {
      const [weir, peer] = [ours[at] as Measured, list[keys === 1 ? 0 : 1] as Measured]
      goals.push({ what: `${load}: commands sent, times rate-limit-redis's`, value: weir.sent / peer.sent, most: 0.01 })
      goals.push({ what: `${load}: with those of scripts`, value: weir.all / peer.all, most: 0.01 })
    }
  }
  return { title: `Commands of Redis for 1,000 requests, ${NODES} processes, ${COUNTED} requests per second each`, rows, goals }
}

function times(timed: Timed): Report {
  const rows = [...timed].map(([[name, kind], [one, many]]) => ({
    middleware: name,
    store: STORES[name][kind],
    '1 key: p50, µs': round((one?.p50 ?? 0) * 1000),
    'p99, µs': round((one?.p99 ?? 0) * 1000),
    '1,000 keys: p50, µs': round((many?.p50 ?? 0) * 1000),
    '1,000 keys: p99, µs': round((many?.p99 ?? 0) * 1000),
  }))
  return { title: `The time of the middleware, ${NODES} processes, ${TIMED} requests per second each`, rows }
}

async function overshoot(): Promise<Report> {
  const of = async (kind: Kind) => (await cluster('express-rate-limit', kind, [FLOOD]))[0]?.allowed ?? Number.NaN
  const allowed = await of('weir')
  const requests = FLOOD.requests * NODES
  const rows = [
    { store: 'Weir', requests, allowed },
    { store: 'MemoryStore', requests, allowed: await of('memory') },
  ]
  // The bound of a fixed window: half of the limit, and the requests of 4 ms.
  const most = SHARED * 1.5 + (TIMED * NODES * 4) / 1000
  const goals = [{ what: 'allowed by all processes', value: allowed, most }]
  return { title: `express-rate-limit with a limit of ${SHARED}, ${NODES} processes`, rows, goals }
}

async function pairs(rounds: number, quick: boolean): Promise<Report> {
  const cases = NAMES.flatMap((middleware) => [1, 1000].map((keys) => ({ middleware, keys })))
  const server = await RedisServer.start()
  try {
    const results = await inTurn(cases, rounds, ({ middleware, keys }) => {
      // The others take up to a hundred times as long for a request.
      const requests = quick || !['express-rate-limit', '@fastify/rate-limit'].includes(middleware) ? 2000 : 20_000
      return runProgram<PairResult>('compat/pair', { url: server.url, middleware, keys, requests } satisfies PairInput)
    })
    const rows: Row[] = []
    const goals: Goal[] = []
    for (const [{ middleware, keys }, list] of results) {
      const of = (store: keyof PairResult, figure: 'p50' | 'p99') => round(median(list.map((result) => result[store][figure])))
      const load = keys === 1 ? '1 key' : '1,000 keys'
      const value = median(list.map(({ weir, memory }) => weir.p50 / memory.p50))
      rows.push({
        middleware,
        keys: load,
        'Weir: p50, µs': of('weir', 'p50'),
        'Weir: p99, µs': of('weir', 'p99'),
        'memory: p50, µs': of('memory', 'p50'),
        'memory: p99, µs': of('memory', 'p99'),
        'p50, times': round(value),
      })
      goals.push({ what: `${middleware}, ${load}: p50, times its memory store's`, value, most: 1.05 })
    }
    return { title: 'The time of the middleware, one process, both stores by turns', rows, goals }
  } finally {
    await server.stop()
  }
}
