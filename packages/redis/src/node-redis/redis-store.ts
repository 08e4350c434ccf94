import { checkSockets, type Store } from '@weir/core/sync'
import { checkOptions, type RedisStoreOptions } from '../connection/options.ts'
import { storeAt } from '../exchange/store.ts'
import { type NodeRedisTarget, targetOf } from './target.ts'

/**
 * Connects processes through Redis 5 or newer (or Valkey) by clients of the `redis` package, version 5 or later: one server, Sentinels, or
 * a Cluster.
 *
 * @param target - a client or cluster of `createClient()` or `createCluster()`, or the options of `createCluster()` or `createSentinel()`.
 * A client is a template only: the store opens its own connections with the client's settings, and never uses, changes or closes the
 * client. All throttlers of a process that use the same store share them.
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { redisStore } from '@weir/redis/node-redis'
 * import { createClient } from 'redis'
 *
 * const store = redisStore(createClient({ url: 'redis://localhost:6379' }))
 * ```
 */
export function redisStore(target: NodeRedisTarget, storeOptions: RedisStoreOptions = {}): Store {
  checkSockets('redisStore')
  return storeAt(targetOf(target), checkOptions(storeOptions))
}
