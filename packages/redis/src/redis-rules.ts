import { IoredisLink } from './ioredis/ioredis-link.ts'
import { type RedisTarget, templateOf } from './ioredis/template.ts'
import { type RedisRules, type RedisRulesOptions, rulesAt } from './rules/rules.ts'

/**
 * Reads and writes rules in a key of Redis, for `follow` of `@weir/core/rules`. Changes reach all processes by publish/subscribe.
 *
 * @param target - the same as for `redisStore`
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { follow } from '@weir/core/rules'
 * import { redisRules } from '@weir/redis'
 *
 * await follow(throttler, redisRules('redis://localhost:6379')).ready
 * ```
 */
export function redisRules(target: RedisTarget, options: RedisRulesOptions = {}): RedisRules {
  const template = templateOf(target)
  const { isCluster, db, address } = template
  return rulesAt({ isCluster, db, address, open: (link) => new IoredisLink(template, link) }, options)
}
