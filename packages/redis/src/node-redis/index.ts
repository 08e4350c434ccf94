export type { RedisStoreOptions } from '../connection/options.ts'
export type { RedisRules, RedisRulesOptions } from '../rules/rules.ts'
export { redisRules } from './redis-rules.ts'
export { redisStore } from './redis-store.ts'
export type {
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisClusterOptions,
  NodeRedisSentinelOptions,
  NodeRedisTarget,
} from './target.ts'
