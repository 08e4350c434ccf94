// Inner modules of peers, which have no types.
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
