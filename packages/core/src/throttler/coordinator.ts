import type { Exchanging, StoreExchange } from '../algorithms/shared/site.ts'
import type { StrictDecisions, StrictHost } from '../decide/strict.ts'
import type { ClusterNode } from '../inspect/node-status.ts'
import type { Snapshot } from '../inspect/snapshot.ts'
import type { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import type { MeetingPoint, SyncResult } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'

/** `local`: without a store; `connecting`: the store has not answered yet. */
export type ThrottlerState = 'idle' | 'local' | 'connecting' | 'synced' | 'degraded' | 'closed'

/** A throttler, as its coordinator sees it. Times are of the monotonic clock. */
export interface Coordinated {
  readonly emitter: Emitter
  /** The meters whose counts are exchanged. */
  meters(): readonly Exchanging[]
  /** Called now and then. Returns when it wants to be called next at the latest. */
  tick(now: number): number
  warn(error: WeirError, subject?: string): void
  snapshot(): Snapshot
}

/** Keeps the counts of several nodes together. A store brings it, so that a throttler without a store carries none of its code. */
export interface Coordinator {
  /** This node's id; known for good once a throttler has joined. */
  readonly nodeId: string
  readonly state: ThrottlerState
  /** What meters see of it. */
  readonly exchange: StoreExchange
  /** Makes what lets requests wait for the store's word, where a policy is `strict`. */
  readonly strictly: (host: StrictHost) => StrictDecisions
  /** Whether it can keep the counts of a throttler with these policies: none of them is another throttler's. */
  serves(throttler: Coordinated, policyIds: readonly string[]): boolean
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
   * @param deadline milliseconds
   * @returns undefined when it did not answer within the deadline
   */
  ask(meter: Exchanging, id: string, deadline: number): Promise<SyncResult | undefined>
  /** Ticks soon, as there is something new to look after. */
  wake(): void
  /** What a snapshot tells of the store. */
  about(now: number): Pick<Snapshot, 'state' | 'degradedFor' | 'nodes' | 'sync'>
  /** The live nodes as far as known, this one first. */
  cluster(now: number): readonly ClusterNode[]
  /** Sends what is left within `deadline` milliseconds; the connection is closed with the last throttler. */
  leave(throttler: Coordinated, deadline: number): Promise<void>
}

/** What a throttler asks a coordinator for. */
export interface CoordinatorOptions {
  readonly clock: Clock
  readonly random: () => number
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number
  readonly throttler: Coordinated
  readonly policyIds: readonly string[]
}

/**
 * What `createThrottler` takes as its store: a meeting point of the nodes, and what keeps their counts together there. Throttlers
 * that get the same value share one coordinator: its connection, its heartbeat and its exchange.
 */
export interface Store extends MeetingPoint {
  coordinate(options: CoordinatorOptions): Coordinator
}
