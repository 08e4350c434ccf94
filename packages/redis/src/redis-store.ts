import { backgroundStore, type Store } from '@weir/core/sync'
import { decides } from './central/decides.ts'
import { checkOptions, type RedisStoreOptions } from './connection/options.ts'
import { type RedisTarget, templateOf } from './connection/template.ts'
import { RedisConnection } from './exchange/store-connection.ts'
import { Keys } from './keys/keys.ts'

/** Hash tags in a Cluster: enough for a dozen primaries, few enough for a heartbeat to visit all each second. */
const CLUSTER_BUCKETS = 16

/**
 * A store in Redis 5 or newer (or Valkey): one server, Sentinels, or a Cluster.
 *
 * @param target - an ioredis 5 or 6 instance, a URL, options of ioredis, or `{ cluster: nodes, options }`. An instance is
 * a template only: connections of the store's own are opened with its settings, and it is neither used, changed nor closed.
 * All throttlers of a process that get the same store share them.
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { redisStore } from '@weir/redis'
 * import { Redis } from 'ioredis'
 *
 * const store = redisStore(new Redis('redis://localhost:6379'))
 * ```
 */
export function redisStore(target: RedisTarget, storeOptions: RedisStoreOptions = {}): Store {
  const options = checkOptions(storeOptions)
  const template = templateOf(target)
  const keys = new Keys(options.namespace, options.buckets ?? (template.isCluster ? CLUSTER_BUCKETS : 1))
  return backgroundStore({
    kind: 'redis',
    address: `${template.address} ${options.namespace}`,
    decides,
    open: (node) => new RedisConnection(node, template, keys, options),
  })
}
