// Internal modules of peers, which have no types.
declare module '@fastify/rate-limit/store/LocalStore.js' {
  export default class LocalStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, cache: number)
    incr(key: string, done: (error: Error | null, result: { current: number; ttl: number }) => void, window: number, max: number): void
  }
}

declare module 'koa-ratelimit/limiter/memory.js' {
  export default class Limiter {
    constructor(options: { id: string; db: Map<string, unknown>; max: number; duration: number })
    get(): Promise<{ remaining: number; total: number }>
  }
}

declare module '@fastify/rate-limit/store/RedisStore.js' {
  export default class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: object)
    incr(key: string, done: (error: Error | null, result: { current: number; ttl: number }) => void, window: number, max: number): void
  }
}

declare module 'koa-ratelimit/limiter/redis.js' {
  export default class Limiter {
    constructor(options: { db: object; max: number; duration: number })
    get(options: { id: string }): Promise<{ remaining: number; total: number }>
  }
}
