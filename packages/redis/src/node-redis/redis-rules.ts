import { type RedisRules, type RedisRulesOptions, rulesAt } from '../rules/rules.ts'
import { type NodeRedisTarget, targetOf } from './target.ts'

/**
 * Rules in a key of Redis by clients of the `redis` package, for `follow` of `@weir/core/rules`: a change is announced to all nodes by
 * publish/subscribe.
 *
 * @param target - as that of `redisStore`
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 */
export function redisRules(target: NodeRedisTarget, options: RedisRulesOptions = {}): RedisRules {
  return rulesAt(targetOf(target), options)
}
