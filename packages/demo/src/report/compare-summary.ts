import type { DemoOptions } from '../options.ts'
import type { Timing } from '../processes/messages.ts'
import type { ServerWork } from '../store/command-stats.ts'
import type { Count } from '../traffic/tally.ts'
import type { Check } from './summary.ts'

/** The result of the traffic with one of the two coordinations. Times are milliseconds. */
export interface Way {
  readonly coordination: 'background' | 'central'
  readonly ran: number
  readonly count: Count
  /** Units that the abusive client was allowed in each complete interval. */
  readonly abusive: readonly number[]
  readonly latest: number
  readonly work: ServerWork
  /** Timing of each gateway. */
  readonly timings: readonly Timing[]
  readonly problem: string | undefined
}

export interface WaySummary {
  readonly coordination: 'background' | 'central'
  readonly requests: number
  readonly allowed: number
  readonly rejected: number
  readonly redis: {
    /** Commands that the server executed, including commands in scripts, by `INFO commandstats`. */
    readonly commands: number
    readonly commandsPerRequest: number
    readonly scripts: number
    /** Processor time by `INFO cpu`. */
    readonly cpuMs: number
  }
  /** Time from the arrival at a gateway until an allowed request is forwarded to the backend, for the slowest gateway. */
  readonly gatewayMs: { readonly median: number; readonly p99: number; readonly max: number }
  readonly abusive: { readonly limit: number; readonly perInterval: readonly number[] }
  readonly latestMs: number
}

export interface CompareSummary {
  readonly program: 'weir demo'
  readonly version: 1
  readonly mode: 'compare'
  readonly node: string
  readonly store: string
  readonly limits: { readonly perClient: number; readonly intervalMs: number; readonly spans: number }
  readonly interrupted: boolean
  readonly ways: readonly WaySummary[]
  readonly checks: readonly Check[]
  readonly ok: boolean
}

export function compareSummary(
  { limit, interval, spans }: DemoOptions,
  ways: readonly Way[],
  store: string,
  interrupted: boolean,
): CompareSummary {
  const summaries = ways.map((way) => waySummary(way, limit))
  const checks = interrupted ? [] : checksOf(ways, summaries)
  return {
    program: 'weir demo',
    version: 1,
    mode: 'compare',
    node: process.version,
    store,
    limits: { perClient: limit, intervalMs: interval, spans },
    interrupted,
    ways: summaries,
    checks,
    ok: checks.every(({ ok }) => ok !== false),
  }
}

function waySummary({ coordination, count, abusive, latest, work, timings }: Way, limit: number): WaySummary {
  const { allowed, rejected, errors } = count
  const requests = allowed + rejected + errors
  const slowest = (read: (timing: Timing) => number): number => Number(Math.max(0, ...timings.map(read)).toFixed(3))
  return {
    coordination,
    requests,
    allowed,
    rejected,
    redis: {
      commands: work.commands,
      commandsPerRequest: Number((work.commands / Math.max(1, requests)).toFixed(3)),
      scripts: work.scripts,
      cpuMs: Math.round(work.cpu),
    },
    gatewayMs: { median: slowest(({ median }) => median), p99: slowest(({ p99 }) => p99), max: slowest(({ max }) => max) },
    abusive: { limit, perInterval: abusive },
    latestMs: Math.round(latest),
  }
}

function checksOf(ways: readonly Way[], [background, central]: readonly WaySummary[]): Check[] {
  const problem = ways.find((way) => way.problem !== undefined || way.count.errors > 0)
  const checks: Check[] = [{ name: 'every request was answered', ok: problem === undefined, detail: problem?.problem ?? 'no errors' }]
  if (background === undefined || central === undefined) return checks
  const [few, many] = [background.redis.commands, central.redis.commands]
  checks.push({
    name: 'Redis executed fewer commands with background syncs',
    ok: few < many,
    detail: `${few} commands instead of ${many}`,
  })
  return checks
}
