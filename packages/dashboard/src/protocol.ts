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

/** One policy of the cluster. The answering process reports all figures that are not rates or sums. */
export interface PolicyView extends Partial<Omit<PolicySnapshot, 'allowed' | 'rejected' | 'blocks' | 'share'>> {
  readonly name: string
  readonly limit: number
  readonly intervalMs: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** Units that a key may use at once after rest: the limit, or the size of a bucket. */
  readonly capacity: number
  /** Number of blocked keys. In a dry run, the keys that would be blocked. */
  readonly blocked: number
  /** Units of requests in flight, of all processes. */
  readonly inFlight: number
  /** Requests of all processes that wait for the policy, and the longest wait so far in milliseconds. */
  readonly waiting: number
  readonly longestWaitMs: number
  /** Units of all processes that their store has not received yet. */
  readonly unsynced: number
  /** Units of leases, of all processes. */
  readonly leased: number
  readonly overshoot: number
  /** Units beyond the size of a bucket, for the key that owes most. The highest value that a process reports. */
  readonly debt: number
  /** Units allowed and requests rejected per second, of all processes. */
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
  /** Whether its last report is so old that its figures are stale. */
  readonly stale: boolean
  readonly unsynced: number
  /** The process's part of the requests that the cluster allows now. */
  readonly share: number
}

/** One of the most used keys, with the units that all processes have allowed. */
export type TopKey = Omit<KeyUsage, 'own'>

/**
 * A moment of the charts: milliseconds since the Unix epoch, requests allowed and rejected per second, and a round trip in milliseconds.
 * Unknown values are null.
 */
export type Point = readonly [time: number, allowed: number | null, rejected: number | null, roundTrip: number | null]

/** A reason for rejections: how many per second, and how many since the live processes started. */
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
  /** Number of live processes, including processes without a report. */
  readonly nodeCount: number
  readonly actions: boolean
  readonly point: Point
  /** Only reasons with at least one rejection. */
  readonly reasons: readonly ReasonView[]
  readonly policies: readonly PolicyView[]
  readonly nodes: readonly NodeView[]
  readonly top: readonly TopKey[]
  /** The keys that requests of all processes wait for, longest wait first. */
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
  /** Changes with the page. An older page reloads itself. */
  readonly build: string
  readonly history: readonly Point[]
  /** History from before the stream was opened. It is sent again when the processes report more. */
  readonly earlier: readonly Point[]
  /** Whether the client has signed in, so that it can sign out. */
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
    /** Used units while a dashboard was open, for at most ten minutes, oldest first. */
    readonly samples: readonly Sample[]
  }[]
  /** The key by which policies count. A long key is cut. */
  readonly key: string
  /** Block events that this process has received, newest first. */
  readonly events: readonly KeyEvent[]
  readonly note: string
  /** Blocked keys that contain the text. */
  readonly blocked: readonly BlockedKey[]
}

/** A moment of a key: milliseconds since the Unix epoch, units used. */
export type Sample = readonly [time: number, used: number]

/** The start or the end of a block of a key. */
export interface KeyEvent {
  /** Milliseconds since the Unix epoch. */
  readonly time: number
  readonly kind: 'blocked' | 'unblocked'
  readonly policy: string
  readonly cause: string
  /** Planned length of the block in milliseconds. 0 for an end. */
  readonly durationMs: number
}

/** A policy as it was written, with each option as text. */
export interface PolicyRule {
  readonly name: string
  readonly options: readonly (readonly [option: string, text: string])[]
}

/** The rules that the answering process follows. */
export interface RulesFound {
  /** Undefined if the process follows no source. */
  readonly source: string | undefined
  /** Newest first. */
  readonly versions: readonly RulesVersion[]
  readonly policies: readonly PolicyRule[]
  /** Current overrides: the total number, the number that match a search, and a page of them. `until` is null without an end. */
  readonly overrides: {
    readonly total: number
    readonly found: number
    readonly from: number
    readonly rows: readonly { readonly policy: string; readonly key: string; readonly limit: number; readonly until: number | null }[]
  }
  readonly next: { readonly policies: readonly PolicyRule[]; readonly overrides: number } | undefined
}
