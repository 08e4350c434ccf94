import type { Store } from '@weir/core/sync'
import { checkOptions, type RedisStoreOptions } from '../connection/options.ts'
import { storeAt } from '../exchange/store.ts'
import { type NodeRedisTarget, targetOf } from './target.ts'

/**
 * A store in Redis 5 or newer (or Valkey) by clients of the `redis` package, version 5 or later: one server, Sentinels, or a Cluster.
 *
 * @param target - what `createClient()` or `createCluster()` returns, or the options of `createCluster()` or `createSentinel()`. A client
 * is a template only: connections of the store's own are opened with its settings, and it is neither used, changed nor closed. All
 * throttlers of a process that get the same store share them.
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
  return storeAt(targetOf(target), checkOptions(storeOptions))
}
