import type { Holding, HoldingHost } from '../budget/store-holds.ts'
import type { Exchanging, StoreExchange } from '../counting/site.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import type { WaitingRequests } from '../queue/waits.ts'
import type { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import type { Requests } from '../report/requests.ts'
import type { FollowedRules } from '../report/rules-status.ts'
import type { SyncFailureCause } from '../report/stats.ts'
import type { AuditLog, MeetingPoint, StatusReport, SyncResult } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import type { Names } from './names.ts'
import type { WaitingAtStore } from './open-queues.ts'

/** The state of the connection. `local`: there is no store. `connecting`: the store has not answered yet. */
export type ThrottlerState = 'idle' | 'local' | 'connecting' | 'synced' | 'storeDown' | 'closed'

/** The syncs with the store since the process's start. */
export interface SyncSnapshot {
  /** Syncs that succeeded, heartbeats among them. */
  readonly exchanges: number
  /** Syncs that failed. Their counts are sent again. */
  readonly failures: number
  readonly failuresLastHour: number
  readonly failuresByCause: Readonly<Record<SyncFailureCause, number>>
  /** Key writes that were sent. */
  readonly entries: number
  /** Milliseconds. */
  readonly lastDurationMs: number
  readonly lastError: string | undefined
  /** Milliseconds since the last sync that succeeded. Undefined before the first one. */
  readonly sinceSuccessMs: number | undefined
  /** The store's clock less this process's wall clock, in milliseconds. */
  readonly clockOffsetMs: number
  /** Milliseconds by which the estimate of the store's clock may be wrong. */
  readonly clockUncertaintyMs: number
}

/** The state of the store and its syncs. */
export interface StoreStatus {
  /** Milliseconds for which the store has been down. 0 while it answers. */
  readonly storeDownMs: number
  /** Live processes. */
  readonly nodes: number
  readonly sync: SyncSnapshot
}

/** The state of a throttler that `@weir/core/inspect` reads. */
export interface Inspected {
  readonly clock: Clock
  /** When it was created, on the monotonic clock. */
  readonly startedAt: number
  readonly nodeId: string
  readonly state: ThrottlerState
  readonly limiters: readonly Limiter[]
  /** Whether this throttler decides by a policy, or did before an update. */
  hadPolicy(policy: Policy): boolean
  /** Requests that it has decided. */
  readonly requests: Requests
  /** Absent without a store. */
  readonly coordinator: Coordinator | undefined
  readonly emitter: Emitter
  /** The state of the rules that it follows. Undefined if it follows none. */
  followed: FollowedRules | undefined
  /**
   * Called by adapters: from now on each policy needs a `key`.
   *
   * @throws WeirError `WEIR_MISSING_OPTION` for a policy without one
   */
  serveRequests(): void
  /** Undefined if no request has waited yet. */
  waitingRequests(now: number): WaitingRequests | undefined
}

/** A throttler, as its coordinator sees it. Times are of the monotonic clock. */
export interface Coordinated extends Inspected {
  /** The options of its policies, in the order of its limiters. */
  readonly rules: readonly PolicyOptions<never>[]
  /** The meters whose counts are synced. */
  meters(): readonly Exchanging[]
  /** Called now and then. Returns when it must be called next at the latest. */
  tick(now: number): number
  warn(error: WeirError, subject?: string): void
}

/** A key of a policy whose counts are synced, by its id in the store. */
export interface MeterKey {
  readonly meter: Exchanging
  readonly id: string
}

/** Syncs the counts of several processes. A store brings it, so that a throttler without a store carries none of its code. */
export interface Coordinator {
  /** The rules of all throttlers of this process with the same store. */
  readonly names: Names
  /** This process's id. It is final once a throttler has joined. */
  readonly nodeId: string
  readonly state: ThrottlerState
  /** The sync, as meters see it. */
  readonly exchange: StoreExchange
  /** Makes the code that lets requests wait for the store, if a policy has coordination `'leased'` or `'central'`. */
  readonly asking: (host: AskingHost) => Asking
  /** Brings the open reservations of a throttler to the store. */
  readonly holding: (host: HoldingHost) => Holding
  /** Loads the code that lets requests wait at the store. */
  readonly waitingAtStore: () => Promise<WaitingAtStore>
  /** A promise while meters with code outside of the bundle are being loaded, otherwise undefined. It never rejects. */
  readonly loading: Promise<unknown> | undefined
  /**
   * Syncs the counts of a throttler by these rules from now on, in place of its former ones.
   *
   * @throws WeirError `WEIR_DUPLICATE_POLICY` if another throttler has one of them, or another rule of its name. Then nothing has changed
   */
  serve(throttler: Coordinated, rules: readonly PolicyOptions<never>[], policies: readonly Policy[]): void
  /** Called before the first roll of a throttler. Clocks may have stood still since its creation. */
  begin(): void
  /** Starts to sync the counts of a throttler for which it was made. */
  join(throttler: Coordinated): void
  /** Sends the counts of meters that are no longer used. */
  retire(meters: readonly Exchanging[]): void
  /** Requests all blocks and keys near their limits again, because new meters have none of them. */
  welcome(): void
  /**
   * Reads a key's units in all processes from the store.
   *
   * @param id the key's id in the store
   * @param timeout milliseconds
   * @returns undefined without an answer within the timeout
   */
  ask(meter: Exchanging, id: string, timeout: number): Promise<SyncResult | undefined>
  /** Whether the process has just stood still for a second or longer and has read no counts since. Only if `watchStale` was called. */
  readonly stale: boolean
  watchStale(): void
  /** Sends due counts. Resolves once the connection has them. */
  sendDue(): Promise<void>
  /** Reads keys from the store, and takes over their units and blocks. Resolves when that is done, or after `timeout` milliseconds. */
  refresh(keys: readonly MeterKey[], timeout: number): Promise<void>
  /** Sends all counts. Resolves with whether that succeeded within `timeout` milliseconds. */
  flush(timeout: number): Promise<boolean>
  /** Ticks soon, because there is a new task. */
  wake(): void
  /** The throttlers that have started. */
  readonly throttlers: readonly Coordinated[]
  /** When it was created, on the monotonic clock. */
  readonly startedAt: number
  about(now: number): StoreStatus
  /** The last reports of the other processes. They send reports while a process reads them. */
  others(now: number): readonly StatusReport[]
  /** Opens the store's log of manual actions. Undefined if it has none, or before the start. */
  audit(): Promise<AuditLog> | undefined
  /** Sends the remaining counts within `timeout` milliseconds. The last throttler closes the connection. */
  leave(throttler: Coordinated, timeout: number): Promise<void>
}

/** A throttler's settings for its coordinator. */
export interface CoordinatorOptions {
  readonly clock: Clock
  readonly random: () => number
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number
  readonly throttler: Coordinated
  readonly policies: readonly Policy[]
}

/** A throttler, as far as a hot reload changes it. */
export interface Reloadable {
  readonly state: ThrottlerState
  update(policies: readonly never[]): void
}

/**
 * The `store` option of `createThrottler`: the place where processes meet, and the code that syncs their counts there. Throttlers with the
 * same value share one coordinator: its connection, its heartbeat and its syncs.
 */
export interface Store extends MeetingPoint {
  /** A coordinator that can serve the throttler. It does so once `serve` is called. */
  coordinate(options: CoordinatorOptions): Coordinator
  /** Makes a throttler, or returns the one that the same line has made before a hot reload. Undefined: it always makes one. */
  reload?<Made extends Reloadable>(policies: readonly { readonly name?: string }[], create: () => Made): Made
}
