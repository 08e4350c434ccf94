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
  /** Milliseconds; of a calendar the usual length; 0 where the limit is one of requests in flight. */
  readonly interval: number
  readonly algorithm: string
  readonly coordination: string
  readonly dryRun: boolean
  /** Requests that it applied to, and those of them that it rejected. */
  readonly requests: number
  readonly rejected: number
  /** Those that an exact central count would have rejected. */
  readonly exactRejected: number
  /** Keys of which something was rejected. */
  readonly rejectedKeys: number
  /** Units allowed that an exact count rejects, and the other way round; and the most of one key in one interval, as a part of the limit. Of requests in flight those beyond the limit. */
  readonly overshoot: { readonly units: number; readonly missed: number; readonly worst: number }
  /** Most rejected first. */
  readonly top: readonly Readonly<KeyCount>[]
  /** When it rejected: counts of stretches of `width` milliseconds. */
  readonly rejections: { readonly width: number; readonly parts: readonly SeriesPart[] }
  /** Keys that a node holds at most, and whether there were more than it may hold. */
  readonly keysHeld: number
  readonly overflowing: boolean
  /** Keys that were too many to be counted each: `top` and `rejectedKeys` may lack something. */
  readonly uncountedKeys: number
}

/** The effect of one document of rules. */
export interface RulesReport {
  readonly rules: string
  readonly version: number
  /** Requests to which some policy applied, and those to which none did. */
  readonly requests: number
  readonly uncounted: number
  readonly allowed: number
  readonly rejected: number
  readonly exactRejected: number
  /** Requests allowed that an exact central count rejects, and the other way round. */
  readonly allowedBeyond: number
  readonly rejectedEarly: number
  /** All requests and rejections over time. */
  readonly series: { readonly width: number; readonly parts: readonly SeriesPart[] }
  readonly policies: readonly PolicyReport[]
  /** Traffic from the processes to the store. */
  readonly store: {
    /** Exchanges of counts, without heartbeats alone; and counts of keys in them. */
    readonly exchanges: number
    readonly keyWrites: number
    readonly announcements: number
    /** Requests that the store decided about (coordination `central`). */
    readonly decisions: number
  }
  /** Memory of the process with the most keys: bytes per key in all policies, measured here, and bytes of all keys. */
  readonly memory: { readonly bytesPerKey: number; readonly bytes: number }
  readonly notes: readonly string[]
}

/** The output of `weir plan --json`. */
export interface PlanReport {
  readonly log: LogSummary
  readonly nodes: number
  /** Milliseconds. */
  readonly roundTrip: number
  readonly plan: RulesReport
  /** With `--against`: what the other rules did, and what changes. */
  readonly against?: RulesReport
  readonly changes?: { readonly rejectedNow: ChangeReport; readonly allowedNow: ChangeReport }
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

/** @param top keys of each policy that are listed */
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
