import { percentile } from '@weir/bench/statistics'
import type { Seen } from './clients.ts'

/** The results of the clients in a stretch of time. */
export interface Verdict {
  readonly sent: number
  readonly answered: number
  readonly serverErrors: number
  /** Answers that are neither 200, 429 nor a server error. */
  readonly strange: number
  readonly p50: number
  readonly p99: number
  readonly slowest: number
}

export function verdictOf(seen: readonly Seen[], from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): Verdict {
  const part = seen.filter(({ sent }) => sent >= from && sent < to)
  const latencies = part.filter(({ status }) => status !== 0).map(({ latency }) => latency)
  return {
    sent: part.length,
    answered: latencies.length,
    serverErrors: part.filter(({ status }) => status >= 500).length,
    strange: part.filter(({ status }) => status !== 0 && status !== 200 && status !== 429 && status < 500).length,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    slowest: Math.max(0, ...latencies),
  }
}

/** Units allowed beyond the limit in an interval, as a part of the limit. */
export interface Overshoot {
  readonly worst: number
  readonly intervals: number
}

/**
 * Counts the units that were allowed in each interval of the store's clock.
 *
 * @param offset - the difference between the store's time and the shared monotonic clock
 */
export function overshootOf(
  seen: readonly Seen[],
  { limit, interval }: { readonly limit: number; readonly interval: number },
  offset: number,
): Overshoot {
  const allowed = new Map<string, number>()
  for (const { key, status, arrived } of seen) {
    if (arrived === undefined) continue
    const id = `${Math.floor((arrived + offset) / interval)}\n${key}`
    allowed.set(id, (allowed.get(id) ?? 0) + (status === 200 ? 1 : 0))
  }
  let worst = Number.NEGATIVE_INFINITY
  for (const units of allowed.values()) worst = Math.max(worst, (units - limit) / limit)
  return { worst: Math.max(0, worst), intervals: allowed.size }
}

/** The most units in a bucket of the limit's size beyond that size, as a part of the limit. */
export function debtOf(seen: readonly Seen[], { limit, interval }: { readonly limit: number; readonly interval: number }): Overshoot {
  const buckets = new Map<string, { level: number; at: number }>()
  let worst = 0
  for (const { key, status, arrived } of seen.toSorted((one, other) => (one.arrived ?? 0) - (other.arrived ?? 0))) {
    if (arrived === undefined || status !== 200) continue
    const { level, at } = buckets.get(key) ?? { level: 0, at: arrived }
    const after = Math.max(0, level - ((arrived - at) * limit) / interval) + 1
    buckets.set(key, { level: after, at: arrived })
    worst = Math.max(worst, (after - limit) / limit)
  }
  return { worst, intervals: buckets.size }
}

/**
 * Counts like `overshootOf` if requests may wait. It counts only requests that were certainly allowed in the interval in which they
 * came, because their answer came in the same interval.
 */
export function certainOvershootOf(
  seen: readonly Seen[],
  rule: { readonly limit: number; readonly interval: number },
  offset: number,
): Overshoot {
  const of = (time: number): number => Math.floor((time + offset) / rule.interval)
  const certain = seen.filter(({ arrived, sent, latency }) => arrived !== undefined && of(arrived) === of(sent + latency))
  return overshootOf(certain, rule, offset)
}

/** Units that were allowed, by key. */
export function allowedOf(seen: readonly Seen[]): Map<string, number> {
  const allowed = new Map<string, number>()
  for (const { key, status } of seen) if (status === 200) allowed.set(key, (allowed.get(key) ?? 0) + 1)
  return allowed
}
