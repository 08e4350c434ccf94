import type { Cluster } from '../cluster.ts'
import type { ClusterStatus } from '../status.ts'
import type { StoreChoice } from '../store/choose.ts'
import type { Tally } from '../traffic/tally.ts'

/**
 * From so many milliseconds on, requests of one interval arrive in another and gateways hear of each other too late: then
 * the machine was too busy to say anything about a limiter.
 */
export const TOO_LATE = 250

/** One thing that a run must have shown. */
export interface Check {
  readonly name: string
  /** Null: not judged, as the machine was too busy. */
  readonly ok: boolean | null
  readonly detail: string
}

export interface GatewaySummary {
  readonly name: string
  readonly allowed: number
  readonly rejected: number
  readonly errors: number
  /** Its throttler's counts: the same figures seen from inside. */
  readonly counted: { readonly allowed: number; readonly rejected: number }
  readonly syncs: number
  readonly failedSyncs: number
  readonly state: string
}

/** Facts that every run reports, live or replay. */
export interface RunSummary {
  readonly program: 'weir demo'
  /** Version of this summary's shape, for programs that read it. */
  readonly version: 1
  readonly mode: 'live' | 'replay'
  readonly node: string
  readonly store: { readonly kind: StoreChoice['kind']; readonly origin: StoreChoice['origin']; readonly text: string }
  /** How long requests were sent. */
  readonly seconds: number
  readonly interrupted: boolean
  readonly requests: number
  /** How late the latest request reached its gateway, in milliseconds: the figures of a machine that is too busy say little. */
  readonly latestMs: number
  readonly nodes: number
  readonly gateways: readonly GatewaySummary[]
  readonly sync: {
    readonly syncs: number
    readonly failed: number
    readonly keysExchanged: number
    readonly storeCommands: number | null
    readonly storeCommandsPerRequest: number | null
  }
  readonly errors: { readonly count: number; readonly first: string | null }
  readonly checks: readonly Check[]
  /** No check failed. */
  readonly ok: boolean
}

interface Run {
  readonly cluster: Cluster
  readonly tally: Tally
  readonly start: number
  readonly end: number
  readonly interrupted: boolean
  readonly firstError: string | undefined
}

type Shared = Omit<RunSummary, 'mode' | 'gateways' | 'checks' | 'ok'>

/** Must be called after the cluster's end, when the gateways have handed in their last figures. */
export function runSummary({ cluster, tally, start, end, interrupted, firstError }: Run, status: ClusterStatus): Shared {
  const { allowed, rejected, errors } = tally.total()
  const requests = allowed + rejected + errors
  return {
    program: 'weir demo',
    version: 1,
    node: process.version,
    store: { kind: cluster.choice.kind, origin: cluster.choice.origin, text: cluster.storeText },
    seconds: (end - start) / 1000,
    interrupted,
    requests,
    latestMs: Math.round(tally.latest),
    nodes: status.nodes,
    sync: {
      syncs: status.syncs,
      failed: status.failures,
      keysExchanged: status.entries,
      storeCommands: status.commands ?? null,
      storeCommandsPerRequest: status.commands === undefined || requests === 0 ? null : Number((status.commands / requests).toFixed(3)),
    },
    errors: { count: errors + cluster.lost.length, first: cluster.lost[0] ?? firstError ?? null },
  }
}

export function gatewaySummaries({ gateways }: Cluster, tally: Tally): GatewaySummary[] {
  return gateways.map(({ about, snapshot, baseline }, i) => {
    const [now, before] = [snapshot?.requests, baseline?.requests]
    return {
      name: about,
      ...(tally.gateways[i] ?? { allowed: 0, rejected: 0, errors: 0 }),
      counted: { allowed: (now?.allowed ?? 0) - (before?.allowed ?? 0), rejected: (now?.rejected ?? 0) - (before?.rejected ?? 0) },
      syncs: (snapshot?.sync.exchanges ?? 0) - (baseline?.sync.exchanges ?? 0),
      failedSyncs: snapshot?.sync.failures ?? 0,
      state: snapshot?.state ?? 'silent',
    }
  })
}
