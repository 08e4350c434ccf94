import type { FaultProxy } from '@weir/testing'
import type { EtcdServer } from '@weir/tooling/etcd-servers'
import type { PostgresServer } from '@weir/tooling/postgres-servers'
import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Target } from './protocol.ts'

/** Real servers on which faults are made to happen, and how the nodes reach them. */
export interface Stage {
  readonly target: Target
  /** All servers of Redis that hold data, whoever is primary. */
  readonly servers: readonly RedisServer[]
  readonly postgres?: PostgresServer
  readonly etcd?: EtcdServer
  readonly proxy?: FaultProxy
  /** The records of a store other than Redis. */
  readonly books?: Books
  /** The server of Redis that the nodes write to now. */
  primary?(): Promise<RedisServer>
  stop(): Promise<void>
}

/** The parts of a store that can be read beside the nodes. */
export interface Books {
  /** The store's counts per key since the throttlers were made. */
  booked(namespace: string): Promise<Map<string, number>>
  /** Entries that don't expire within a day. */
  immortals(namespace: string): Promise<string[]>
}
