import type { Cluster } from '../cluster.ts'
import type { ClusterStatus } from '../status.ts'
import type { StoreChoice } from '../store/choose.ts'
import type { Tally } from '../traffic/tally.ts'

/**
 * Milliseconds. If a request is later than this, requests may arrive in another interval, and gateways sync too late. The machine was
 * then too busy for figures about a limiter.
 */
export const TOO_LATE = 250

/** One condition that a run must meet. */
export interface Check {
  readonly name: string
  /** Null if the machine was too busy to decide. */
  readonly ok: boolean | null
  readonly detail: string
}

export interface GatewaySummary {
  readonly name: string
  readonly allowed: number
  readonly rejected: number
  readonly errors: number
  /** The throttler's own counts of the same requests. */
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
  /** Seconds for which requests were sent. */
  readonly seconds: number
  readonly interrupted: boolean
  readonly requests: number
  /** Milliseconds by which the latest request was late. High values mean that the machine was too busy for meaningful figures. */
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
  /** Whether no check failed. */
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

/** Must be called after the cluster's end, when the gateways have sent their last reports. */
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
