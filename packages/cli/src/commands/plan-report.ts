import type { LogSummary } from '../log/logs.ts'
import type { ClusterUsage } from '../replay/cluster.ts'
import type { Comparison, OneSided } from '../replay/comparison.ts'
import type { KeyCount } from '../replay/key-counts.ts'
import type { SeriesPart } from '../replay/series.ts'
import type { PolicyTally, Tally } from '../replay/tally.ts'

/** The effect of one policy. Requests with `dryRun` count as rejected if they would have been. */
export interface PolicyReport {
  readonly name: string
  readonly limit: number
  /** Milliseconds. For a calendar the usual length, and 0 if the policy limits requests in flight. */
  readonly interval: number
  readonly algorithm: string
  readonly coordination: string
  readonly dryRun: boolean
  /** Requests to which the policy applied, and the rejected ones among them. */
  readonly requests: number
  readonly rejected: number
  /** Requests that an exact central count would have rejected. */
  readonly exactRejected: number
  /** Keys of the policy, and those with at least one rejected request. */
  readonly keys: number
  readonly rejectedKeys: number
  /**
   * Units allowed that an exact count rejects (`units`), and units rejected that it allows (`missed`). `worst` is the largest overshoot of
   * one key in one interval, as a part of the limit. For requests in flight, the overshoot is the number beyond the limit.
   */
  readonly overshoot: { readonly units: number; readonly missed: number; readonly worst: number }
  /** Most rejected first. */
  readonly top: readonly Readonly<KeyCount>[]
  /** Rejections over time, in parts of `width` milliseconds. */
  readonly rejections: { readonly width: number; readonly parts: readonly SeriesPart[] }
  /** The most keys that a process keeps, and whether there were more than `maxKeys`. */
  readonly keysHeld: number
  readonly overflowing: boolean
  /** Keys that were dropped, because only a bounded number is counted. `top` and `rejectedKeys` may miss some of them. */
  readonly uncountedKeys: number
}

/** The effect of one document of rules. */
export interface RulesReport {
  readonly rules: string
  readonly version: number
  /** Requests to which at least one policy applied, and requests without a policy. */
  readonly requests: number
  readonly uncounted: number
  readonly allowed: number
  readonly rejected: number
  readonly exactRejected: number
  /** Requests allowed that an exact central count rejects, and requests rejected that it allows. */
  readonly allowedBeyond: number
  readonly rejectedEarly: number
  /** All requests and rejections over time. */
  readonly series: { readonly width: number; readonly parts: readonly SeriesPart[] }
  readonly policies: readonly PolicyReport[]
  /** Traffic from the processes to the store. */
  readonly store: {
    /** Syncs with counts (heartbeats alone are not included), and their key writes. */
    readonly exchanges: number
    readonly keyWrites: number
    readonly announcements: number
    /** Requests that the store decided (coordination `central`). */
    readonly decisions: number
  }
  /** Memory of the process with the most keys: bytes per key in all policies, measured here, and bytes of all keys. */
  readonly memory: { readonly bytesPerKey: number; readonly bytes: number }
  readonly notes: readonly string[]
}

/** The output of `weir plan --format json`. */
export interface PlanReport {
  readonly log: LogSummary
  readonly nodes: number
  /** Milliseconds. */
  readonly roundTrip: number
  readonly plan: RulesReport
  /** With `--against`: the report of the other rules, and the differences. */
  readonly against?: RulesReport
  readonly changes?: { readonly rejectedNow: ChangeReport; readonly allowedNow: ChangeReport }
}

/** The output of `weir plan --sweep --format json`. */
export interface SweepReport extends Pick<PlanReport, 'log' | 'nodes' | 'roundTrip'> {
  /** The policy whose limit differs. */
  readonly policy: string
  /** By limit, the least first. */
  readonly sweep: readonly RulesReport[]
}

/** Requests that only one of two documents rejects. */
export interface ChangeReport {
  readonly requests: number
  readonly keys: number
  readonly top: readonly { readonly policy: string; readonly key: string; readonly requests: number }[]
}

/** The input of a report. */
export interface Replayed {
  readonly rules: string
  readonly version: number
  readonly tally: Tally
  readonly usage: ClusterUsage
  readonly bytesPerKey: number
  readonly notes: readonly string[]
}

/** @param top maximum number of keys to list for each policy */
export function rulesReport({ rules, version, tally, usage, bytesPerKey, notes }: Replayed, top: number): RulesReport {
  const { requests, uncounted, allowed, rejected, exactRejected, allowedBeyond, rejectedEarly, series } = tally
  const most = Math.max(0, ...usage.keys.map(({ held }) => held))
  return {
    rules,
    version,
    requests,
    uncounted,
    allowed,
    rejected,
    exactRejected,
    allowedBeyond,
    rejectedEarly,
    series: { width: series.width, parts: series.parts },
    policies: tally.policies.map((one, place) => policyReport(one, usage.keys[place], top)),
    store: {
      exchanges: usage.store.exchanges - usage.store.heartbeats,
      keyWrites: usage.store.entries,
      announcements: usage.store.announcements,
      decisions: usage.store.decisions,
    },
    memory: { bytesPerKey, bytes: bytesPerKey * most },
    notes: [...notes, ...usage.warnings],
  }
}

function policyReport(tally: PolicyTally, keys: ClusterUsage['keys'][number] | undefined, top: number): PolicyReport {
  const { policy, balance, rejections } = tally
  return {
    name: policy.name,
    limit: policy.limit,
    interval: policy.interval,
    algorithm: policy.algorithm.name.replace(/\(.*$/, ''),
    coordination: policy.coordination,
    dryRun: policy.dryRun,
    requests: tally.requests,
    rejected: tally.rejected,
    exactRejected: tally.exactRejected,
    keys: tally.keys.size,
    rejectedKeys: tally.keys.rejectedKeys,
    overshoot: { units: balance.beyond, missed: balance.missed, worst: balance.worst },
    top: tally.keys.top(top),
    rejections: { width: rejections.width, parts: rejections.parts },
    keysHeld: keys?.held ?? 0,
    overflowing: keys?.overflowing === true,
    uncountedKeys: tally.keys.dropped,
  }
}

export function changesReport({ rejected, allowed }: Comparison, top: number): NonNullable<PlanReport['changes']> {
  const one = (side: OneSided): ChangeReport => ({ requests: side.requests, keys: side.keys, top: side.top(top) })
  return { rejectedNow: one(rejected), allowedNow: one(allowed) }
}
