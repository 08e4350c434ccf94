import type { WeirError } from '../report/errors.ts'
import type { Clock } from '../time/clock.ts'
import type { Announcement } from './announcement.ts'
import type { Decider } from './decider.ts'
import type { SyncReply, SyncRequest } from './exchange.ts'

export type { Announcement, AskAnnouncement, BlockAnnouncement, TotalAnnouncement } from './announcement.ts'
export type { BlockChange, BlockState } from './blocks.ts'
export { type Decide, type DecidedPolicy, type Decider, isDone, laneOf, type Question } from './decider.ts'
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
export type { AtomicStep, Verdict } from './step.ts'

/**
 * Where the nodes meet. It keeps, per policy, key and cell (an interval of the epoch, or a bucket of a
 * sliding window), how many units each node has taken and refunded, and tells every node the sum.
 *
 * An implementation must be
 * - idempotent: counts are absolute per node and cell and only grow, so the same request sent twice counts once, and a
 *   late duplicate changes nothing;
 * - self-healing: after it lost data its `generation` changes, and nodes send their running counts and blocks again;
 * - self-cleaning: everything that it keeps expires, set in the same atomic step;
 * - patient: `sync` has a deadline of its own, rejects at once while disconnected, and never queues.
 *
 * `storeContract` of `@weir/testing` is the test suite of this interface.
 */
export interface MeetingPoint {
  /** A short name for messages and metrics, e.g. `'memory'`, `'ipc'`, `'redis'`. */
  readonly kind: string
  /**
   * Where it is, e.g. `'localhost:6379/0 weir'`: stores of one process with the same kind and address are one store, so
   * that their throttlers must agree on rules of the same name. Default: each value is a store of its own.
   */
  readonly address?: string
  /** Opens one node's connection. Neither throws nor waits because the store is away. */
  open(node: StoreNode): StoreConnection
  /**
   * Whether its connections decide about requests by the step of this name, for policies with `coordination: 'central'`. Default:
   * by none.
   */
  decides?(step: string): boolean
}

/** The node that opens a connection, as the store sees it. */
export interface StoreNode {
  /** Unique to this start of this node. No `:` or white space. */
  readonly id: string
  /** The node's own time and timers, for the store's deadlines. */
  readonly clock: Clock
  /** Called with what other nodes, or the store, announce. Must not throw; may be called at any time until closed. */
  announced(announcement: Announcement): void
  /**
   * Called with something that people should know of, though nothing failed: it becomes a `warning` of the throttler. The
   * store sees to it that one cause is told once. Must not throw.
   */
  warned?(error: WeirError): void
}

/** One node's connection to a store. */
export interface StoreConnection {
  /**
   * One exchange of counts.
   *
   * @throws (rejects) when nothing of it could be exchanged, or when the outcome is not known. Parts that failed alone
   * (one slot of a cluster) are `undefined` in `results`.
   */
  sync(request: SyncRequest): Promise<SyncReply>
  /** Opens the decider for requests, if `MeetingPoint.decides` promises one. Core calls it once, when a policy needs it. */
  decider?(): Promise<Decider>
  /** Leaves the registry of live nodes where that is possible and closes what the connection opened. Never rejects. */
  close(): Promise<void>
}
