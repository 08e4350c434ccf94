export type { RedisStoreOptions } from './connection/options.ts'
export type { ClusterTarget, IoredisInstance, RedisTarget } from './connection/template.ts'
export { redisStore } from './redis-store.ts'
