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
  /** What is kept in a store other than Redis. */
  readonly books?: Books
  /** The server of Redis that the nodes write to now. */
  primary?(): Promise<RedisServer>
  stop(): Promise<void>
}

/** What can be read of a store beside the nodes. */
export interface Books {
  /** What the store has counted of each key since the throttlers were made. */
  booked(namespace: string): Promise<Map<string, number>>
  /** What does not go by itself within a day. */
  immortals(namespace: string): Promise<string[]>
}
