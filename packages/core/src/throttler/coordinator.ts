import type { Exchanging, StoreExchange } from '../counting/site.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import type { WhoWaits } from '../queue/waits.ts'
import type { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import type { Requests } from '../report/requests.ts'
import type { FollowedRules } from '../report/rules-status.ts'
import type { SyncFailureCause } from '../report/stats.ts'
import type { MeetingPoint, StatusReport, SyncResult } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import type { Names } from './names.ts'

/** `local`: without a store; `connecting`: the store has not answered yet. */
export type ThrottlerState = 'idle' | 'local' | 'connecting' | 'synced' | 'storeDown' | 'closed'

/** The exchanges with the store since the node's start. */
export interface SyncSnapshot {
  /** Exchanges that succeeded, heartbeats among them. */
  readonly exchanges: number
  /** Exchanges that failed; what they carried is sent again. */
  readonly failures: number
  readonly failuresByCause: Readonly<Record<SyncFailureCause, number>>
  /** Counts of keys that were sent. */
  readonly entries: number
  /** Milliseconds. */
  readonly lastDurationMs: number
  readonly lastError: string | undefined
  /** Milliseconds since the last exchange that succeeded; undefined before the first one. */
  readonly sinceSuccessMs: number | undefined
  /** The store's clock less this node's wall clock, milliseconds. */
  readonly clockOffsetMs: number
  /** By how much the store's clock may be misjudged, milliseconds. */
  readonly clockUncertaintyMs: number
}

/** What a coordinator tells of the store. */
export interface StoreStatus {
  /** Milliseconds for which the store has been away; 0 while it answers. */
  readonly storeDownMs: number
  /** Live nodes. */
  readonly nodes: number
  readonly sync: SyncSnapshot
}

/** What `@weir/core/inspect` reads of a throttler. */
export interface Inspected {
  readonly clock: Clock
  /** When it was made, on the monotonic clock. */
  readonly startedAt: number
  readonly nodeId: string
  readonly state: ThrottlerState
  readonly limiters: readonly Limiter[]
  /** Whether this throttler decides by a policy, or did before an update. */
  hadPolicy(policy: Policy): boolean
  /** Requests that it has decided about. */
  readonly requests: Requests
  /** Absent without a store. */
  readonly coordinator: Coordinator | undefined
  readonly emitter: Emitter
  /** What is known of the rules that it follows; undefined when it follows none. */
  followed: FollowedRules | undefined
  /**
   * Adapters call it: from now on each policy needs a `key`.
   *
   * @throws WeirError `WEIR_MISSING_OPTION` for one that has none
   */
  serveRequests(): void
  /** Undefined where nobody has waited yet. */
  whoWaits(now: number): WhoWaits | undefined
}

/** A throttler, as its coordinator sees it. Times are of the monotonic clock. */
export interface Coordinated extends Inspected {
  /** What its policies were made from, in the order of its limiters. */
  readonly rules: readonly PolicyOptions<never>[]
  /** The meters whose counts are exchanged. */
  meters(): readonly Exchanging[]
  /** Called now and then. Returns when it wants to be called next at the latest. */
  tick(now: number): number
  warn(error: WeirError, subject?: string): void
}

/** Keeps the counts of several nodes together. A store brings it, so that a throttler without a store carries none of its code. */
export interface Coordinator {
  /** The rules of all throttlers of this process with the same store. */
  readonly names: Names
  /** This node's id; known for good once a throttler has joined. */
  readonly nodeId: string
  readonly state: ThrottlerState
  /** What meters see of it. */
  readonly exchange: StoreExchange
  /** Makes what lets requests wait for the store, where a policy has coordination `'leased'` or `'central'`. */
  readonly asking: (host: AskingHost) => Asking
  /** While meters are being loaded whose code is not in every bundle; else undefined. Never rejects. */
  readonly loading: Promise<unknown> | undefined
  /**
   * Keeps the counts of a throttler by these rules from now on, in place of those that it had.
   *
   * @throws WeirError `WEIR_DUPLICATE_POLICY` when one of them is another throttler's, or another rule of its name is; then nothing
   * has changed
   */
  serve(throttler: Coordinated, rules: readonly PolicyOptions<never>[], policies: readonly Policy[]): void
  /** Starts to exchange the counts of a throttler that it was made for. */
  join(throttler: Coordinated): void
  /** Sends what meters hold that are no longer used. */
  retire(meters: readonly Exchanging[]): void
  /** Asks for all blocks and hot keys again, as new meters know of none. */
  welcome(): void
  /**
   * Asks the store for a key's units at all nodes.
   *
   * @param id the key as the store gets it
   * @param timeout milliseconds
   * @returns undefined when it did not answer within the timeout
   */
  ask(meter: Exchanging, id: string, timeout: number): Promise<SyncResult | undefined>
  /** Ticks soon, as there is something new to look after. */
  wake(): void
  /** The throttlers that have started. */
  readonly throttlers: readonly Coordinated[]
  /** When it was made, on the monotonic clock. */
  readonly startedAt: number
  about(now: number): StoreStatus
  /** What the other nodes last told of themselves. They tell while somebody asks. */
  others(now: number): readonly StatusReport[]
  /** Sends what is left within `storeTimeout` milliseconds; the connection is closed with the last throttler. */
  leave(throttler: Coordinated, timeout: number): Promise<void>
}

/** What a throttler asks a coordinator for. */
export interface CoordinatorOptions {
  readonly clock: Clock
  readonly random: () => number
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number
  readonly throttler: Coordinated
  readonly policies: readonly Policy[]
}

/**
 * What `createThrottler` takes as its store: a meeting point of the nodes, and what keeps their counts together there. Throttlers
 * that get the same value share one coordinator: its connection, its heartbeat and its exchange.
 */
export interface Store extends MeetingPoint {
  /** One that can serve the throttler; it does so once it is told to (`serve`). */
  coordinate(options: CoordinatorOptions): Coordinator
}
