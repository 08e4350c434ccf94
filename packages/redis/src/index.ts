export type { RedisStoreOptions } from './options.ts'
export { redisStore } from './redis-store.ts'
export type { ClusterTarget, IoredisInstance, RedisTarget } from './template.ts'
