import type { LogSummary } from '../log/logs.ts'
import type { Busiest, BusyKey } from '../replay/busiest.ts'
import type { Frequent, FrequentText } from '../replay/frequent.ts'
import { shownKey } from '../replay/reader.ts'

/** The effect of one limit, decided by an exact fixed window. */
export interface LimitReport {
  readonly limit: number
  /** Requests that it rejects, and clients with such a request. */
  readonly rejected: number
  readonly rejectedClients: number
}

/** A client that the suggested limit rejects. */
export interface ClientReport {
  readonly client: string
  readonly requests: number
  /** Requests in its busiest interval, and the start of that interval in milliseconds since the epoch. */
  readonly busiest: number
  readonly busiestAt: number
  /** The most frequent user agents, routes (methods and paths) and statuses. `share` is a part of the client's requests. */
  readonly agents: readonly FrequentText[]
  readonly routes: readonly FrequentText[]
  readonly statuses: readonly FrequentText[]
}

/** The output of `weir suggest --json`. */
export interface SuggestReport {
  readonly log: LogSummary
  /** Milliseconds. */
  readonly interval: number
  readonly requests: number
  readonly clients: number
  /** Percentiles of each client's requests in its busiest interval. */
  readonly busiest: Readonly<Record<'p50' | 'p90' | 'p95' | 'p99' | 'p99.5' | 'max', number>>
  /** The least limits that leave 99 % and 99.9 % of the clients alone. The first one is the suggestion. */
  readonly leaves99: LimitReport
  readonly leaves999: LimitReport
  /** Round limits between them and around them. */
  readonly others: readonly LimitReport[]
  /** Clients above the suggested limit, busiest first. */
  readonly above: readonly ClientReport[]
}

/** The most round limits, and their digits. 3 and 6 make whole requests per second of a minute. */
const MOST_ROUND = 5
const DIGITS = [1, 3, 6] as const

/** @param top maximum number of clients to list */
export function suggestReport(log: LogSummary, interval: number, counts: Busiest, top: number): SuggestReport {
  const limitOf = (limit: number): LimitReport => ({ limit, rejected: counts.rejected(limit), rejectedClients: counts.above(limit).length })
  const at = (part: number): number => counts.leaving(part)
  const suggested = at(0.99)
  return {
    log,
    interval,
    requests: counts.requests,
    clients: counts.keys,
    busiest: { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: suggested, 'p99.5': at(0.995), max: at(1) },
    leaves99: limitOf(suggested),
    leaves999: limitOf(at(0.999)),
    others: roundLimits(at(0.95), at(1)).map(limitOf),
    above: counts.above(suggested).slice(0, top).map(clientReport),
  }
}

function clientReport({ key, requests, most, mostAt, traits }: BusyKey): ClientReport {
  const topOf = (texts: Frequent | undefined): readonly FrequentText[] => texts?.top(3) ?? []
  return {
    client: shownKey(key),
    requests,
    busiest: most,
    busiestAt: mostAt,
    agents: topOf(traits?.agents),
    routes: topOf(traits?.routes),
    statuses: topOf(traits?.statuses),
  }
}

/** The first round numbers above `from`, and below `to`. */
function roundLimits(from: number, to: number): readonly number[] {
  const limits: number[] = []
  for (let scale = 1; scale < to; scale *= 10)
    for (const digit of DIGITS) if (digit * scale > from && digit * scale < to && limits.length < MOST_ROUND) limits.push(digit * scale)
  return limits
}
