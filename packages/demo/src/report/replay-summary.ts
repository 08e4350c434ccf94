import type { Cluster } from '../cluster.ts'
import { type Comparison, compare } from '../log/compare.ts'
import { type Arrival, exactFixedWindow } from '../log/exact.ts'
import type { LogReport } from '../log/reader.ts'
import type { ScheduledRequest } from '../log/schedule.ts'
import type { LogWindow } from '../log/window.ts'
import type { DemoOptions } from '../options.ts'
import { statusOf } from '../status.ts'
import type { Tally } from '../traffic/tally.ts'
import { type Check, gatewaySummaries, type RunSummary, runSummary } from './summary.ts'

export interface ReplaySummary extends RunSummary {
  readonly mode: 'replay'
  readonly log: LogReport & {
    readonly file: string
    /** The part of the log that was replayed, as ISO times. */
    readonly from: string
    readonly to: string
    readonly requests: number
    readonly clients: number
  }
  readonly limits: {
    readonly perClient: number
    readonly logIntervalMs: number
    readonly intervalMs: number
    readonly speed: number
    readonly spans: number
  }
  /** The gateways compared with an exact limiter that decides by the arrivals which the gateways stamped. */
  readonly comparison: Comparison
  /** The rejections of an exact limiter by the log's own times. They equal the others unless requests arrived late. */
  readonly exactByLog: { readonly clientsRejected: number; readonly requestsRejected: number }
  /** Requests that reached their gateway in another interval than in the log. */
  readonly strayed: number
}

export interface ReplayRun {
  readonly options: DemoOptions
  readonly file: string
  readonly cluster: Cluster
  readonly tally: Tally
  readonly window: LogWindow
  readonly sent: readonly ScheduledRequest[]
  readonly arrivals: readonly Arrival[]
  readonly start: number
  readonly end: number
  readonly interrupted: boolean
  readonly firstError: string | undefined
}

export function replaySummary(run: ReplayRun): ReplaySummary {
  const { options, file, cluster, tally, window, sent, arrivals } = run
  const { limit, interval: logInterval, speed, spans } = options
  const interval = tally.interval
  const requests = new Map<string, number>()
  for (const { client } of arrivals) requests.set(client, (requests.get(client) ?? 0) + 1)
  const rejected = new Map([...tally.clients].filter(([, count]) => count.rejected > 0).map(([client, count]) => [client, count.rejected]))
  const byLog = exactFixedWindow(
    sent.map(({ client, logged }) => ({ client, time: logged })),
    limit,
    logInterval,
  )
  const shared = runSummary(run, statusOf(cluster, run.end))
  const checks: Check[] = [
    { name: 'every request was answered', ok: shared.errors.count === 0, detail: shared.errors.first ?? 'no errors' },
    { name: 'the gateways saw each other', ok: shared.nodes === cluster.gateways.length, detail: `${shared.nodes} live processes` },
  ]
  return {
    ...shared,
    mode: 'replay',
    gateways: gatewaySummaries(cluster, tally),
    log: {
      ...window.report,
      file,
      from: new Date(window.from).toISOString(),
      to: new Date(window.to).toISOString(),
      requests: sent.length,
      clients: requests.size,
    },
    limits: { perClient: limit, logIntervalMs: logInterval, intervalMs: interval, speed, spans },
    comparison: compare(requests, rejected, tally.storeDown, exactFixedWindow(arrivals, limit, interval)),
    exactByLog: { clientsRejected: byLog.clients.size, requestsRejected: byLog.rejected },
    strayed: strayed(run),
    checks,
    ok: checks.every(({ ok }) => ok !== false),
  }
}

/** The number of requests that arrived in another interval than planned, counted per client, each once. */
function strayed({ sent, arrivals, tally: { interval }, start, window, options }: ReplayRun): number {
  const surplus = new Map<string, number>()
  const add = (client: string, ordinal: number, n: number): void => {
    const id = `${ordinal} ${client}`
    surplus.set(id, (surplus.get(id) ?? 0) + n)
  }
  for (const { client, logged } of sent) add(client, Math.floor((logged - window.from) / options.interval), -1)
  for (const { client, time } of arrivals) add(client, Math.floor((time - start) / interval), 1)
  return [...surplus.values()].reduce((sum, n) => sum + Math.max(0, n), 0)
}
