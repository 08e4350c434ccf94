import type { Cluster } from '../cluster.ts'
import type { DemoOptions } from '../options.ts'
import { noticed, type Outage } from '../outage.ts'
import { statusOf } from '../status.ts'
import { ABUSE, ABUSER } from '../traffic/population.ts'
import { type Count, sum, type Tally } from '../traffic/tally.ts'
import { type Check, gatewaySummaries, type RunSummary, runSummary, TOO_LATE } from './summary.ts'

/**
 * Part of a limit by which an interval may exceed it in the check. The limiter is approximate by design, and three clocks are involved.
 */
const TOLERANCE = 0.1

/**
 * The most units that an interval may allow: a tenth more than the limit, or the units that arrived while counts were in flight, as
 * docs/guides/accuracy.md explains. Counts travel from a gateway to the store, and from there to another gateway. No process was later
 * than the latest request of that interval.
 *
 * @param offered requests of the interval
 * @param latestMs milliseconds by which its latest request was late
 */
export function mostAllowed(limit: number, offered: number, latestMs: number, intervalMs: number): number {
  return limit + Math.ceil(Math.max(limit * TOLERANCE, (offered * 2 * latestMs) / intervalMs))
}

export interface LiveInterval {
  readonly ordinal: number
  /** False if the traffic did not fill the interval, such as the last one of a run that was cut short. */
  readonly whole: boolean
  /** Whether Redis was down during a part of it, or a gateway had not reconnected yet. */
  readonly outage: boolean
  readonly allowed: number
  readonly rejected: number
  /** Milliseconds by which the latest request was late. */
  readonly latestMs: number
  readonly globalLimit: number
  readonly abusive: { readonly allowed: number; readonly rejected: number; readonly limit: number }
  /** The client within its limit with the most allowed requests. */
  readonly busiestOther: { readonly allowed: number; readonly rejected: number; readonly limit: number }
}

export interface LiveSummary extends RunSummary {
  readonly mode: 'live'
  readonly limits: {
    readonly perClient: number
    readonly everyone: number
    readonly intervalMs: number
    readonly spans: number
    readonly cooldownMs: number
  }
  readonly intervals: readonly LiveInterval[]
  readonly abusive: Count & {
    readonly client: string
    readonly timesItsLimit: number
    readonly worstIntervalAllowed: number
    readonly limit: number
  }
  readonly others: Count & {
    readonly clients: number
    /** Rejected requests that were decided without the store, because it was down or its answer was overdue. */
    readonly storeDown: number
  }
  readonly outage: OutageSummary | undefined
}

export interface OutageSummary {
  /** Milliseconds since the traffic began. */
  readonly killedAfterMs: number
  readonly restartedAfterMs: number | undefined
  /** The delay until each gateway noticed the outage. */
  readonly storeDownAfterMs: readonly (number | null)[]
  readonly storeUpAfterMs: readonly (number | null)[]
}

export interface LiveRun {
  readonly options: DemoOptions
  readonly cluster: Cluster
  readonly tally: Tally
  readonly globalLimit: number
  /** Milliseconds since the epoch. */
  readonly start: number
  readonly end: number
  readonly outage: Outage
  readonly interrupted: boolean
  readonly firstError: string | undefined
}

export function liveSummary(run: LiveRun): LiveSummary {
  const { options, cluster, tally, globalLimit } = run
  const { limit, interval, spans, cooldown } = options
  const intervals = liveIntervals(run)
  const abusive = tally.clients.get(ABUSER) ?? sum([])
  const others = [...tally.clients].filter(([client]) => client !== ABUSER)
  const worst = Math.max(0, ...intervals.filter((one) => one.whole && !one.outage).map((one) => one.abusive.allowed))
  const partial = {
    ...runSummary(run, statusOf(cluster, run.end)),
    mode: 'live' as const,
    limits: { perClient: limit, everyone: globalLimit, intervalMs: interval, spans, cooldownMs: cooldown },
    gateways: gatewaySummaries(cluster, tally),
    intervals,
    abusive: { client: ABUSER, timesItsLimit: ABUSE, limit, ...abusive, worstIntervalAllowed: worst },
    others: {
      clients: others.length,
      ...sum(others.map(([, count]) => count)),
      storeDown: others.reduce((sum, [client]) => sum + (tally.storeDown.get(client) ?? 0), 0),
    },
    outage: outageSummary(run),
  }
  const checks = liveChecks(run, partial)
  return { ...partial, checks, ok: checks.every(({ ok }) => ok !== false) }
}

function liveIntervals({ options: { limit, interval }, cluster, tally, globalLimit, start, end, outage }: LiveRun): LiveInterval[] {
  const recovered = cluster.gateways.map(
    ({ states }) => states.findLast(({ state }) => state === 'storeUp')?.time ?? Number.POSITIVE_INFINITY,
  )
  const backAt = outage.killed === undefined ? 0 : Math.max(...recovered)
  return tally.intervals().map(({ ordinal, total, clients, latest }) => {
    const [from, to] = [ordinal * interval, (ordinal + 1) * interval]
    const { allowed, rejected } = clients.get(ABUSER) ?? sum([])
    const busiest = [...clients].filter(([client]) => client !== ABUSER).map(([, count]) => count)
    const most = busiest.sort((a, b) => b.allowed - a.allowed)[0] ?? sum([])
    return {
      ordinal,
      whole: from >= start && to <= end,
      outage: outage.killed !== undefined && to > outage.killed && from < backAt,
      allowed: total.allowed,
      rejected: total.rejected,
      latestMs: Math.round(latest),
      globalLimit,
      abusive: { allowed, rejected, limit },
      busiestOther: { allowed: most.allowed, rejected: most.rejected, limit },
    }
  })
}

function outageSummary({ cluster, start, outage: { killed, restarted } }: LiveRun): OutageSummary | undefined {
  if (killed === undefined) return undefined
  const nulls = (times: readonly (number | undefined)[]): (number | null)[] => times.map((time) => time ?? null)
  return {
    killedAfterMs: killed - start,
    restartedAfterMs: restarted === undefined ? undefined : restarted - start,
    storeDownAfterMs: nulls(noticed(cluster, 'storeDown', killed)),
    storeUpAfterMs: nulls(noticed(cluster, 'storeUp', restarted)),
  }
}

/**
 * Checks that a client stayed within a limit. The check's name fits the count: it never claims the limit for a higher count.
 *
 * @param allowed units in each interval
 * @param ok whether the result is good enough
 */
export function held(who: string, limit: number, allowed: readonly number[], ok: boolean | null): Check {
  const worst = Math.max(0, ...allowed)
  const above = ((worst / limit - 1) * 100).toFixed(1)
  const detail = `at most ${worst} of ${limit} in an interval`
  if (worst <= limit) return { name: `${who} got no more than the limit`, ok, detail }
  if (ok === true) return { name: `${who} got no more than ${above} % above the limit`, ok, detail }
  return { name: `${who} stayed near the limit`, ok, detail: `${detail}, ${above} % above` }
}

function liveChecks({ options, cluster, globalLimit, interrupted }: LiveRun, summary: Omit<LiveSummary, 'checks' | 'ok'>): Check[] {
  const { limit, interval, cooldown, killRedis } = options
  const { allowed, rejected, storeDown } = summary.others
  const steady = summary.intervals.filter(({ whole, outage }) => whole && !outage)
  const within = (counts: { readonly allowed: number; readonly rejected: number }, of: number, latestMs: number): boolean =>
    counts.allowed <= mostAllowed(of, counts.allowed + counts.rejected, latestMs, interval)
  const judged = (ok: boolean): boolean | null => (summary.latestMs < TOO_LATE ? ok : null)
  const checks: Check[] = [
    { name: 'every request was answered', ok: summary.errors.count === 0, detail: summary.errors.first ?? 'no errors' },
    {
      name: 'no other client was rejected',
      ok: rejected > 0 && rejected === storeDown ? null : judged(rejected === 0),
      detail: `${rejected} of ${allowed + rejected} requests`,
    },
    held(
      ABUSER,
      limit,
      steady.map(({ abusive }) => abusive.allowed),
      judged(steady.every(({ abusive, latestMs }) => within(abusive, limit, latestMs))),
    ),
    held(
      'all clients together',
      globalLimit,
      steady.map(({ allowed }) => allowed),
      judged(steady.every((one) => within(one, globalLimit, one.latestMs))),
    ),
    { name: 'the gateways saw each other', ok: summary.nodes === cluster.gateways.length, detail: `${summary.nodes} live processes` },
  ]
  if (cooldown === 0) {
    const least = Math.min(...steady.map(({ abusive }) => abusive.allowed))
    const part = Math.min(100, (100 * least) / limit).toFixed(least < limit ? 1 : 0)
    if (steady.length > 0)
      checks.push({
        name: least < limit ? `${ABUSER} got at least ${part} % of its limit` : `${ABUSER} got its whole limit`,
        ok: judged(least >= limit * (1 - TOLERANCE)),
        detail: `at least ${least} of ${limit} in an interval`,
      })
  }
  if (killRedis && !interrupted && summary.outage !== undefined) {
    const { storeDownAfterMs: storeDown, storeUpAfterMs: recovered } = summary.outage
    const all = (times: readonly (number | null)[]): string => times.map((time) => (time === null ? 'never' : `${time} ms`)).join(', ')
    checks.push(
      { name: 'every gateway noticed that Redis was down', ok: !storeDown.includes(null), detail: `after ${all(storeDown)}` },
      { name: 'every gateway reconnected', ok: !recovered.includes(null), detail: `after ${all(recovered)}` },
    )
  }
  return checks
}
