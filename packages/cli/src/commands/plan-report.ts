import type { LogSummary } from '../log/logs.ts'
import type { ClusterUsage } from '../replay/cluster.ts'
import type { Comparison, OneSided } from '../replay/comparison.ts'
import type { KeyCount } from '../replay/key-counts.ts'
import type { SeriesPart } from '../replay/series.ts'
import type { PolicyTally, Tally } from '../replay/tally.ts'

/** What one policy did. Requests with `dryRun` count as refused where they would have been. */
export interface PolicyReport {
  readonly name: string
  readonly limit: number
  /** Milliseconds; of a calendar the usual length; 0 where the limit is one of requests in flight. */
  readonly interval: number
  readonly algorithm: string
  readonly coordination: string
  readonly dryRun: boolean
  /** Requests that it applied to, and those of them that it refused. */
  readonly requests: number
  readonly refused: number
  /** Those that an exact central count would have refused. */
  readonly exactRefused: number
  /** Keys of which something was refused. */
  readonly refusedKeys: number
  /** Units admitted that an exact count refuses, and the other way round; and the most of one key in one interval, as a part of the limit. Of requests in flight those beyond the limit. */
  readonly overshoot: { readonly units: number; readonly missed: number; readonly worst: number }
  /** Most refused first. */
  readonly top: readonly Readonly<KeyCount>[]
  /** When it refused: counts of stretches of `width` milliseconds. */
  readonly refusals: { readonly width: number; readonly parts: readonly SeriesPart[] }
  /** Keys that a node holds at most, and whether there were more than it may hold. */
  readonly keysHeld: number
  readonly overflowing: boolean
  /** Keys that were too many to be counted each: `top` and `refusedKeys` may lack something. */
  readonly uncountedKeys: number
}

/** What one document of rules did. */
export interface RulesReport {
  readonly rules: string
  readonly version: number
  /** Requests to which some policy applied, and those to which none did. */
  readonly requests: number
  readonly uncounted: number
  readonly admitted: number
  readonly refused: number
  readonly exactRefused: number
  /** Requests admitted that an exact central count refuses, and the other way round. */
  readonly admittedBeyond: number
  readonly refusedEarly: number
  /** All requests and refusals over time. */
  readonly series: { readonly width: number; readonly parts: readonly SeriesPart[] }
  readonly policies: readonly PolicyReport[]
  /** What the nodes sent to the store. */
  readonly store: {
    /** Exchanges of counts, without heartbeats alone; and counts of keys in them. */
    readonly exchanges: number
    readonly keyWrites: number
    readonly announcements: number
    /** Requests that the store decided about (coordination `central`). */
    readonly decisions: number
  }
  /** Of the node with the most keys: bytes of a key in all policies, measured in this process, and of all keys. */
  readonly memory: { readonly bytesPerKey: number; readonly bytes: number }
  readonly notes: readonly string[]
}

/** What `weir plan --json` writes. */
export interface PlanReport {
  readonly log: LogSummary
  readonly nodes: number
  /** Milliseconds. */
  readonly roundTrip: number
  readonly plan: RulesReport
  /** With `--against`: what the other rules did, and what changes. */
  readonly against?: RulesReport
  readonly changes?: { readonly refusedNow: ChangeReport; readonly admittedNow: ChangeReport }
}

/** Requests that only one of two documents refuses. */
export interface ChangeReport {
  readonly requests: number
  readonly keys: number
  readonly top: readonly { readonly policy: string; readonly key: string; readonly requests: number }[]
}

/** What a report is made of. */
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
  const { requests, uncounted, admitted, refused, exactRefused, admittedBeyond, refusedEarly, series } = tally
  const most = Math.max(0, ...usage.keys.map(({ held }) => held))
  return {
    rules,
    version,
    requests,
    uncounted,
    admitted,
    refused,
    exactRefused,
    admittedBeyond,
    refusedEarly,
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
  const { policy, balance, refusals } = tally
  return {
    name: policy.name,
    limit: policy.limit,
    interval: policy.interval,
    algorithm: policy.algorithm.name.replace(/\(.*$/, ''),
    coordination: policy.coordination,
    dryRun: policy.dryRun,
    requests: tally.requests,
    refused: tally.refused,
    exactRefused: tally.exactRefused,
    refusedKeys: tally.keys.refusedKeys,
    overshoot: { units: balance.beyond, missed: balance.missed, worst: balance.worst },
    top: tally.keys.top(top),
    refusals: { width: refusals.width, parts: refusals.parts },
    keysHeld: keys?.held ?? 0,
    overflowing: keys?.overflowing === true,
    uncountedKeys: tally.keys.dropped,
  }
}

export function changesReport({ refused, admitted }: Comparison, top: number): NonNullable<PlanReport['changes']> {
  const one = (side: OneSided): ChangeReport => ({ requests: side.requests, keys: side.keys, top: side.top(top) })
  return { refusedNow: one(refused), admittedNow: one(admitted) }
}
