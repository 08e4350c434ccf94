import type {
  BlockedKey,
  ClusterNode,
  KeyRejections,
  KeyUsage,
  PolicySnapshot,
  RequestRejection,
  RulesVersion,
  SyncSnapshot,
  WaitingKey,
} from '@weir/core/inspect'

/** One policy of the cluster. What is not a rate is as the answering node knows it. */
export interface PolicyView extends Partial<Omit<PolicySnapshot, 'allowed' | 'rejected' | 'blocks' | 'share'>> {
  readonly name: string
  readonly limit: number
  readonly intervalMs: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** Units that a key may take at once after rest: the limit, or what a bucket holds. */
  readonly capacity: number
  /** Keys that are blocked; of a policy in a dry run those that would be. */
  readonly blocked: number
  /** Units of requests in flight, of all nodes. */
  readonly inFlight: number
  /** Requests of all nodes that wait for it, and for how many milliseconds the one has that came first. */
  readonly waiting: number
  readonly longestWaitMs: number
  /** Units of all nodes that their store does not know of yet. */
  readonly unsynced: number
  /** Units that nodes hold ahead of requests, all together. */
  readonly leased: number
  readonly overshoot: number
  /** Units beyond what a bucket holds, of the key that owes most, by the node that knows of most. */
  readonly debt: number
  /** Units and rejections per second, of all nodes. */
  readonly allowedRate: number
  readonly rejectedRate: number
}

export interface NodeView
  extends Pick<
    ClusterNode,
    'node' | 'label' | 'self' | 'state' | 'ageMs' | 'uptimeMs' | 'roundTripMs' | 'failures' | 'clockOffsetMs' | 'rules'
  > {
  /** Requests per second. */
  readonly allowedRate: number
  readonly rejectedRate: number
  /** Whether it has not told of itself for so long that its figures are old. */
  readonly stale: boolean
  readonly unsynced: number
  /** This node's part of what the cluster allows just now. */
  readonly share: number
}

/** One of the most used keys, with what the nodes have allowed of it together. */
export type TopKey = Omit<KeyUsage, 'own'>

/** A moment of the charts: milliseconds since the Unix epoch, requests per second and milliseconds, null where they are not known. */
export type Point = readonly [time: number, allowed: number | null, rejected: number | null, roundTrip: number | null]

/** Why requests are rejected: how many per second, and how many since the live nodes began. */
export interface ReasonView {
  readonly reason: RequestRejection
  readonly rate: number
  readonly total: number
}

export interface LogEntry {
  readonly time: number
  readonly kind: 'blocked' | 'unblocked' | 'storeDown' | 'storeUp' | 'overflow' | 'nodes' | 'rules' | 'warning'
  readonly text: string
}

/** The state of the cluster as the page shows it. */
export interface View {
  readonly time: number
  readonly node: string
  readonly state: string
  readonly storeDownMs: number
  /** Live nodes, those included that have not told of themselves yet. */
  readonly nodeCount: number
  readonly actions: boolean
  readonly point: Point
  /** Those that there were. */
  readonly reasons: readonly ReasonView[]
  readonly policies: readonly PolicyView[]
  readonly nodes: readonly NodeView[]
  readonly top: readonly TopKey[]
  /** The keys that requests of all nodes wait for, those first that have waited longest. */
  readonly waiting: readonly WaitingKey[]
  readonly blocked: readonly BlockedKey[]
  readonly sync: SyncSnapshot
  readonly log: readonly LogEntry[]
  /**
   * The effect that candidate rules would have had in the processes that judge by them: units allowed and requests rejected since the
   * candidates began.
   */
  readonly judged: {
    readonly policies: readonly { readonly name: string; readonly allowed: number; readonly rejected: number }[]
    /** Most often rejected first. */
    readonly keys: readonly KeyRejections[]
  }
  /** Notes on the keys in the lists. */
  readonly notes: Readonly<Record<string, string>>
}

/** The first message of a stream. */
export interface Hello {
  /** Changes with the page: an older one loads itself again. */
  readonly build: string
  readonly history: readonly Point[]
  /** History from before the stream was opened. It is sent again when the processes have more of it. */
  readonly earlier: readonly Point[]
  /** Whether the reader has signed in, and so may sign out. */
  readonly signOut: boolean
}

/** The state of one key. */
export interface Found {
  readonly parts: readonly {
    readonly policy: string
    readonly key: string
    /** The most units that the key can have: the limit, or the size of a bucket. */
    readonly limit: number
    readonly remaining: number
    readonly reason: string
    /** Milliseconds. */
    readonly retryAfterMs: number
    /** Whether the policy rejects nothing. */
    readonly dryRun: boolean
    /** How much of the limit was used, while a dashboard was open: ten minutes at most, oldest first. */
    readonly samples: readonly Sample[]
  }[]
  /** The key as it is counted by: a long one is cut. */
  readonly key: string
  /** Its blocks as this process has heard of them, newest first. */
  readonly events: readonly KeyEvent[]
  readonly note: string
  /** Blocked keys that hold the text. */
  readonly blocked: readonly BlockedKey[]
}

/** A moment of a key: milliseconds since the Unix epoch, units used. */
export type Sample = readonly [time: number, used: number]

/** A block of a key began, or ended. */
export interface KeyEvent {
  /** Milliseconds since the Unix epoch. */
  readonly time: number
  readonly kind: 'blocked' | 'unblocked'
  readonly policy: string
  readonly cause: string
  /** Milliseconds that the block was to last; 0 for its end. */
  readonly durationMs: number
}

/** A policy as it was written, each option as a text. */
export interface PolicyRule {
  readonly name: string
  readonly options: readonly (readonly [option: string, text: string])[]
}

/** The rules that the answering node follows. */
export interface RulesFound {
  /** Undefined where it follows none. */
  readonly source: string | undefined
  /** Newest first. */
  readonly versions: readonly RulesVersion[]
  readonly policies: readonly PolicyRule[]
  /** Those that have not ended: how many there are, how many were looked for, and some of these; `until` is null where one stays. */
  readonly overrides: {
    readonly total: number
    readonly found: number
    readonly from: number
    readonly rows: readonly { readonly policy: string; readonly key: string; readonly limit: number; readonly until: number | null }[]
  }
  readonly next: { readonly policies: readonly PolicyRule[]; readonly overrides: number } | undefined
}
