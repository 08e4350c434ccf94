import { checkSockets, type Store } from '@weir/core/sync'
import { checkOptions, type RedisStoreOptions } from './connection/options.ts'
import { storeAt } from './exchange/store.ts'
import { IoredisLink } from './ioredis/ioredis-link.ts'
import { type RedisTarget, templateOf } from './ioredis/template.ts'

/**
 * Connects processes through Redis 5 or newer (or Valkey): one server, Sentinels, or a Cluster.
 *
 * @param target - an ioredis 5 or 6 instance, a URL, options of ioredis, or `{ cluster: nodes, options }`. An instance is a template only:
 * the store opens its own connections with the instance's settings, and never uses, changes or closes the instance. All throttlers of a
 * process that use the same store share them.
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
  checkSockets('redisStore')
  const options = checkOptions(storeOptions)
  const template = templateOf(target)
  const { isCluster, db, address } = template
  return storeAt({ isCluster, db, address, open: (link) => new IoredisLink(template, link) }, options)
}
