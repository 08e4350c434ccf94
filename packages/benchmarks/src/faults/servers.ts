import type { FaultProxy } from '@weir/testing'
import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Target } from './protocol.ts'

/** Real servers on which faults are made to happen, and how the nodes reach them. */
export interface Stage {
  readonly target: Target
  /** All servers that hold data, whoever is primary. */
  readonly servers: readonly RedisServer[]
  readonly proxy?: FaultProxy
  /** The server that the nodes write to now, where there is one. */
  primary(): Promise<RedisServer>
  stop(): Promise<void>
}
