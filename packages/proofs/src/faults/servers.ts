import type { FaultProxy } from '@weir/testing'
import type { EtcdServer } from '@weir/tooling/etcd-servers'
import type { PostgresServer } from '@weir/tooling/postgres-servers'
import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Target } from './protocol.ts'

/** Real servers on which faults are caused, and the way in which processes reach them. */
export interface Stage {
  readonly target: Target
  /** All servers of Redis that store data, primaries and replicas. */
  readonly servers: readonly RedisServer[]
  readonly postgres?: PostgresServer
  readonly etcd?: EtcdServer
  readonly proxy?: FaultProxy
  /** The records of a store other than Redis. */
  readonly books?: Books
  /** The server of Redis to which processes write now. */
  primary?(): Promise<RedisServer>
  stop(): Promise<void>
}

/** The parts of a store that a test can read without the processes. */
export interface Books {
  /** The store's counts per key since the throttlers were made. */
  booked(namespace: string): Promise<Map<string, number>>
  /** Entries that don't expire within a day. */
  immortals(namespace: string): Promise<string[]>
}
