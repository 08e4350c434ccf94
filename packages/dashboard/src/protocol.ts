import type {
  AuditEntry,
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

/** Whether a policy rejects requests. Dry runs and candidates only count what they would reject. */
export type Mode = 'enforced' | 'dry-run' | 'candidate'

/** One policy of the cluster. The answering process reports all figures that are not rates or sums. */
export interface PolicyView
  extends Partial<Omit<PolicySnapshot, 'allowed' | 'rejected' | 'blocks' | 'share' | 'coordination' | 'reservations'>> {
  readonly name: string
  readonly mode: Mode
  /** The `key` option as text. Undefined if code passes the keys, or if only other processes have the policy. */
  readonly keyedBy?: string
  /** Milliseconds, 0 without a cooldown. Undefined if only other processes have the policy. */
  readonly cooldownMs?: number
  readonly limit: number
  readonly intervalMs: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  readonly coordination: string
  /** Units that a key may use at once after rest: the limit, or the size of a bucket. */
  readonly capacity: number
  /** Keys with a cooldown or a manual block. In a dry run, the keys that would be blocked. */
  readonly blocked: number
  /** Keys that have no units left and are not blocked, among the keys that processes list. */
  readonly atLimit: number
  /** Units of requests in flight, of all processes. */
  readonly inFlight: number
  /** Open reservations of all processes, and their units. */
  readonly reservations: { readonly open: number; readonly units: number }
  /** Requests of all processes that wait for the policy, and the longest wait so far in milliseconds. */
  readonly waiting: number
  readonly longestWaitMs: number
  /** Units of all processes that their store has not received yet. */
  readonly unsynced: number
  /** Units of leases, of all processes. */
  readonly leased: number
  /** The most by which a key may exceed its limit now, as a part of the limit. An estimate. */
  readonly overshoot: number
  /** The most by which the confirmed count of a key exceeded its limit in the last hour, as a part of the limit. */
  readonly measuredOvershoot: number
  /** The most units that each of the busiest keys has used in the last half hour, most first. At most 50 keys. */
  readonly busiest: readonly number[]
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
  /** Failed syncs of the last hour. */
  readonly failuresLastHour: number
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
export interface TopKey extends Omit<KeyUsage, 'own'> {
  /** Units beyond the size of a bucket, which must drain first. `used` is then the size. 0 for other algorithms. */
  readonly debt: number
}

/** A key with rejected requests, of all processes. */
export interface LimitedView {
  readonly policy: string
  readonly key: string
  readonly mode: Mode
  /** The reason of the newest rejection. */
  readonly reason: string
  /** Rejected requests of the last minute, and since the processes started. */
  readonly lastMinute: number
  readonly total: number
  /** First and last rejection, in milliseconds since the Unix epoch. */
  readonly since: number
  readonly last: number
  /** Number of processes that list the key. */
  readonly processes: number
  /** Rejected requests in steps of 5 s while a dashboard was open, oldest first. At most 60 steps. */
  readonly spark: readonly number[]
}

/** A blocked key. */
export interface BlockedView extends BlockedKey {
  /** Whether the block lasts until the interval ends, because the policy's cooldown would end sooner. */
  readonly untilIntervalEnd: boolean
}

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
  /** Label of the process that caused it, or that noticed it if the cause is unknown. */
  readonly process?: string
  /** The mode of the event's policy, if it has one. */
  readonly mode?: Mode
}

/** The state of the cluster as the page shows it. */
export interface View {
  readonly time: number
  readonly node: string
  readonly state: string
  readonly storeDownMs: number
  /** Number of live processes, including processes without a report. */
  readonly nodeCount: number
  /** Number of processes with a report. The rates are their sum. */
  readonly reported: number
  readonly actions: boolean
  readonly point: Point
  /** Only reasons with at least one rejection. */
  readonly reasons: readonly ReasonView[]
  readonly policies: readonly PolicyView[]
  readonly nodes: readonly NodeView[]
  readonly top: readonly TopKey[]
  /** The keys that requests of all processes wait for, longest wait first. */
  readonly waiting: readonly WaitingKey[]
  readonly blocked: readonly BlockedView[]
  /** Keys with rejected requests, most in the last minute first. At most 25 per policy. */
  readonly limited: readonly LimitedView[]
  /** Outages of the store in the last half hour, in milliseconds since the Unix epoch. The end is null while the store is down. */
  readonly outages: readonly (readonly [from: number, to: number | null])[]
  readonly sync: SyncSnapshot
  readonly log: readonly LogEntry[]
  /**
   * The effect that candidate rules would have had in the processes that judge by them: units allowed and requests rejected since the
   * candidates began.
   */
  readonly judged: {
    readonly policies: readonly {
      readonly name: string
      readonly allowed: number
      readonly rejected: number
      /** Requests that the enforced policy of this name has rejected since the candidate began. Undefined if that is unknown. */
      readonly enforcedRejected?: number
    }[]
    /** Most often rejected first. */
    readonly keys: readonly KeyRejections[]
  }
  /** Notes on the keys in the lists. */
  readonly notes: Readonly<Record<string, string>>
}

/**
 * The first message of a stream, as the event `hello`. Further events are `view` (a `View`), `earlier` (`Hello.earlier` again), and `filled`
 * (points that replace the points of the same times, because their values became known after an outage).
 */
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
  /** Empty if no policy counts exactly this key in this process, and no process lists it. */
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
  readonly blocked: readonly BlockedView[]
  /** Keys that contain the text, in this process's tables and in the lists of all processes. At most 50. */
  readonly matches: readonly TopKey[]
}

/** The answer to `block`, `unblock`, `reset` and `undo`. */
export interface Done {
  readonly done: true
  /** A request that undoes the action: a POST to `action` with the rest as its body, within 10 s. Absent if nothing would change. */
  readonly undo?: { readonly action: 'undo'; readonly key: string; readonly id: string }
}

/** The answer to `audit`, newest first. */
export interface Audit {
  readonly entries: readonly AuditEntry[]
}

/** The answer to `series`: per second, for a policy (units allowed), a process or a key. Unknown values are null. */
export interface Series {
  readonly points: readonly (readonly [time: number, allowed: number | null, rejected: number | null])[]
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
