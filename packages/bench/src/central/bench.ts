import { RedisServer } from '@weir/tooling/redis-servers'
import type { AwayInput, AwayResult } from '../away/program.ts'
import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Goal, type Report, type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import type { ContenderName } from './contenders.ts'
import type { CentralInput, CentralResult } from './program.ts'

/** The comparisons: Weir's algorithms, and peers with the same algorithm. */
const ALGORITHMS: Readonly<Record<string, { readonly ours: ContenderName; readonly peers: readonly ContenderName[] }>> = {
  'fixed window': {
    ours: 'weir, fixedWindow()',
    peers: ['rate-limiter-flexible', 'rate-limit-redis', '@fastify/rate-limit', '@upstash/ratelimit, fixedWindow'],
  },
  'fixed window from the first request': {
    ours: "weir, fixedWindow({ start: 'first-request' })",
    peers: ['rate-limiter-flexible', 'rate-limit-redis', '@fastify/rate-limit'],
  },
  'two-window counter': { ours: 'weir, slidingCounter()', peers: ['@upstash/ratelimit, slidingWindow'] },
  'sliding log': { ours: 'weir, slidingLog()', peers: ['koa-ratelimit'] },
  'token bucket': { ours: 'weir, tokenBucket()', peers: ['@upstash/ratelimit, tokenBucket'] },
}
const FLOOR: ContenderName = 'one script, INCR and PEXPIRE'
/** Contenders without a peer. */
const ALONE: readonly ContenderName[] = ['weir, slidingWindow()']

type Medians = Readonly<Record<keyof CentralResult, number>>

/** The cost of a decision in Redis for each request, for the client and for Redis. */
export const central: Bench = async ({ rounds, quick }) => {
  const [single, many] = quick ? [1000, 10_000] : [20_000, 50_000]
  const names = [...new Set([FLOOR, ...Object.values(ALGORITHMS).flatMap(({ ours, peers }) => [ours, ...peers]), ...ALONE])]
  const results = await inTurn(names, rounds, (contender) => measure(contender, single, many))
  const medians = new Map([...results].map(([name, list]) => [name, mediansOf(list)]))
  const rows: Row[] = [...medians].map(([contender, { p50, p99, redis, client, sent, inside }]) => ({
    contender,
    'p50, ms': round(p50),
    'p99, ms': round(p99),
    'Redis CPU, µs': round(redis),
    'own CPU, µs': round(client),
    'commands sent': round(sent),
    'inside scripts': round(inside),
  }))
  const of = (name: ContenderName) => medians.get(name) as Medians
  const goals: Goal[] = []
  for (const [algorithm, { ours, peers }] of Object.entries(ALGORITHMS)) {
    const best = (figure: keyof CentralResult) => of(ours)[figure] / Math.min(...peers.map((peer) => of(peer)[figure]))
    goals.push({ what: `${algorithm}: p50, times the best peer's`, value: best('p50'), most: 1 })
    goals.push({ what: `${algorithm}: p99, times the best peer's`, value: best('p99'), most: 1 })
    goals.push({ what: `${algorithm}: commands sent, times the best peer's`, value: best('sent'), most: 1 })
    goals.push({ what: `${algorithm}: Redis CPU, times the best peer's`, value: best('redis'), most: 1.3 })
  }
  return [{ title: 'Decided by Redis, for each request', rows, goals }, await whileAway()]
}

/** Starts a new server for each run, so that a run finds no data of an earlier one. */
async function measure(contender: ContenderName, single: number, many: number): Promise<CentralResult> {
  const server = await RedisServer.start()
  try {
    const input: CentralInput = { port: server.port, contender, single, many }
    return await runProgram<CentralResult>('central', input)
  } finally {
    await server.stop()
  }
}

function mediansOf(list: readonly CentralResult[]): Medians {
  const of = (figure: keyof CentralResult) => median(list.map((result) => result[figure]))
  return { p50: of('p50'), p99: of('p99'), redis: of('redis'), client: of('client'), sent: of('sent'), inside: of('inside') }
}

const EVEN = [0.25, 0.25, 0.25, 0.25]
const ONE = [1, 0, 0, 0]
const AWAY: Readonly<Record<string, AwayInput>> = {
  "'share', traffic spread evenly": { failMode: 'share', parts: EVEN },
  "'share', all of it at one node": { failMode: 'share', parts: ONE },
  "'open'": { failMode: 'open', parts: EVEN },
  "'closed'": { failMode: 'closed', parts: EVEN },
}

/**
 * The units that four processes allow for a key while the store hangs, in virtual time. The limit is 1000 units per 10 s, and twice
 * as many are offered.
 */
async function whileAway(): Promise<Report> {
  const rows: Row[] = []
  for (const [choice, input] of Object.entries(AWAY)) {
    const { allowed, waited, longest } = await runProgram<AwayResult>('away', input)
    const [before, goes, gone, returns, after] = allowed as [number, number, number, number, number]
    rows.push({
      failMode: choice,
      'allowed: store there': before,
      'gone after 2.5 s': goes,
      away: gone,
      'back after 2.5 s': returns,
      'there again': after,
      'waited 50 ms': waited,
      'longest wait, ms': round(longest),
    })
  }
  return { title: 'Of a limit of 1000 per 10 s, while the store hangs', rows }
}
