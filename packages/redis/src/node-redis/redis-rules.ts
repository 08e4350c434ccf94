import { type RedisRules, type RedisRulesOptions, rulesAt } from '../rules/rules.ts'
import { type NodeRedisTarget, targetOf } from './target.ts'

/**
 * Reads and writes rules in a key of Redis by clients of the `redis` package, for `follow` of `@weir/core/rules`. Changes reach all
 * processes by publish/subscribe.
 *
 * @param target - the same as for `redisStore`
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 */
export function redisRules(target: NodeRedisTarget, options: RedisRulesOptions = {}): RedisRules {
  return rulesAt(targetOf(target), options)
}
