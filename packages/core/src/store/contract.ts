import type { WeirError } from '../report/errors.ts'
import type { Clock } from '../time/clock.ts'
import type { Announcement } from './announcement.ts'
import type { AuditLog } from './audit.ts'
import type { Decider } from './decider.ts'
import type { SyncReply, SyncRequest } from './exchange.ts'

export type { Announcement, AskAnnouncement, BlockAnnouncement, TotalAnnouncement } from './announcement.ts'
export { AUDITED_FOR, type AuditLog, boundedLog, LONGEST_AUDITED, MOST_AUDITED } from './audit.ts'
export type { BlockChange, BlockState } from './blocks.ts'
export { type Decide, type DecidedPolicy, type Decider, isDone, laneOf, MOST_OPEN, type OpenReservation, type Question } from './decider.ts'
export type { SyncEntry, SyncReply, SyncRequest, SyncResult } from './exchange.ts'
export type { HeartbeatReply, HeartbeatRequest, RulesReport, StatusReport } from './heartbeat.ts'
export {
  BUCKET_GROUPS,
  BUCKET_PARTS,
  type Cell,
  FINE_PARTS,
  LATEST,
  lastCellOf,
  RESET_CELLS,
  type Shape,
  type StorePolicy,
  shapeOf,
} from './policy.ts'
export { changeBy, isState, lifetimeBy, takeBy } from './reservation.ts'
export type { AtomicStep, Verdict } from './step.ts'

/**
 * The place where processes meet. For each policy, key and cell it keeps the units that each process has taken and refunded, and it returns
 * their sum to every process.
 *
 * An implementation must be
 * - idempotent: counts are absolute per process and cell, and only grow. A request that is sent twice counts once, and a late duplicate
 *   changes nothing.
 * - self-healing: if it loses data, its `generation` changes. Then every process sends its counts and blocks again.
 * - self-cleaning: everything that it keeps expires, and the expiry is set in the same atomic step.
 * - patient: `sync` has its own timeout, rejects at once while disconnected, and never queues.
 *
 * `storeContract` of `@weir/testing` is the test suite of this interface.
 */
export interface MeetingPoint {
  /** A short name for messages and metrics, e.g. `'memory'`, `'ipc'`, `'redis'`. */
  readonly kind: string
  /**
   * The store's address, e.g. `'localhost:6379/0 weir'`. Within one Node.js process, stores with the same kind and address are one store,
   * so their throttlers must agree on rules of the same name. Default: each value is a store of its own.
   */
  readonly address?: string
  /** Opens one process's connection. It neither throws nor waits if the store is down. */
  open(node: StoreNode): StoreConnection
  /**
   * Whether its connections can decide requests by the step with this id, for policies with `coordination: 'central'`. Default: they can't.
   */
  decides?(step: string): boolean
  /**
   * Whether it keeps open reservations: the `reservation` of questions, and `open` of requests for leases. Default: it doesn't, so
   * `reserve` throws for policies with coordination `'central'` and `'leased'`.
   */
  readonly reserves?: boolean
}

/** The process that opens a connection, as the store sees it. */
export interface StoreNode {
  /** A new id for each start of the process. It contains no `:` and no white space. */
  readonly id: string
  /** The process's clock and timers, for the store's timeouts. */
  readonly clock: Clock
  /** Receives announcements of the store and of other processes, at any time until the connection is closed. Must not throw. */
  announced(announcement: Announcement): void
  /**
   * Receives problems that users should know of, although nothing failed. Each becomes a `warning` of the throttler. The store reports each
   * cause once. Must not throw.
   */
  warned?(error: WeirError): void
}

/** One process's connection to a store. */
export interface StoreConnection {
  /**
   * Sends counts and returns totals, in one sync.
   *
   * @throws (rejects) if no part of it succeeded, or if the outcome is unknown. Parts that failed alone (one slot of a cluster) are
   * `undefined` in `results`.
   */
  sync(request: SyncRequest): Promise<SyncReply>
  /** Opens the decider for requests, if `MeetingPoint.decides` promises one. Core calls it once, when a policy needs it. */
  decider?(): Promise<Decider>
  /** Opens the log of manual actions. Core calls it for each action, and for each reader. A store without a log leaves this out. */
  audit?(): Promise<AuditLog>
  /**
   * Removes the process from the registry of live processes, if possible, and closes everything that the connection opened. Never rejects.
   */
  close(): Promise<void>
}
