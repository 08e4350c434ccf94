import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import type { ThrottlerStorageService } from '@nestjs/throttler'
import {
  type Algorithm,
  createThrottler,
  type Duration,
  fixedWindow,
  leakyBucket,
  memoryStore,
  type PolicyOptions,
  slidingCounter,
  slidingLog,
  slidingWindow,
  type Throttler,
  type ThrottlerOptions,
  tokenBucket,
} from '@weir/core'
import { MemoryStore } from 'express-rate-limit'
import MemoryLimiter from 'koa-ratelimit/limiter/memory.js'
import { RateLimiter } from 'limiter'
import { BurstyRateLimiter, RateLimiterMemory } from 'rate-limiter-flexible'

/** One way to count a request. */
export interface Contender {
  /** Decides on `keys[ids[i]]` for all i in [from, to). Returns the number of allowed requests. */
  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number | Promise<number>
  /** Decides the same requests, but makes a key string for each of them. */
  fresh(ids: Uint32Array, from: number, to: number): number | Promise<number>
}

/** Makes the key of a user: a new string without a hash, as from a request. */
export function keyOf(id: number): string {
  return `user:${id}`
}

const HOUR = 3_600_000

/**
 * The plain fixed window, which shows the least cost of a decision. Each loop is a separate function, so that they share no
 * compiled code.
 */
export class Floor implements Contender {
  readonly #entries = new Map<string, { count: number; end: number }>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  check(key: string): boolean {
    const entry = this.#entries.get(key)
    const now = Date.now()
    if (entry === undefined || now >= entry.end) {
      this.#entries.set(key, { count: 1, end: now + HOUR })
      return true
    }
    if (entry.count >= this.#limit) return false
    entry.count++
    return true
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

/** The plain sliding log, which shows the least cost of its requests. Times are in a ring, and the answer is only yes or no. */
export class PlainLog implements Contender {
  readonly #logs = new Map<string, { ring: Float64Array; head: number; size: number }>()
  readonly #limit: number
  readonly #interval: number

  constructor(limit: number, interval: number) {
    this.#limit = limit
    this.#interval = interval
  }

  check(key: string): boolean {
    const now = performance.now()
    let log = this.#logs.get(key)
    if (log === undefined) this.#logs.set(key, (log = { ring: new Float64Array(8), head: 0, size: 0 }))
    while (log.size > 0 && now - (log.ring[log.head] as number) >= this.#interval) {
      log.head = (log.head + 1) & (log.ring.length - 1)
      log.size--
    }
    if (log.size >= this.#limit) return false
    if (log.size === log.ring.length) {
      const wider = new Float64Array(2 * log.size)
      for (let place = 0; place < log.size; place++) wider[place] = log.ring[(log.head + place) & (log.size - 1)] as number
      log.ring = wider
      log.head = 0
    }
    log.ring[(log.head + log.size++) & (log.ring.length - 1)] = now
    return true
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

/** The listeners of a throttler. */
interface Heard {
  readonly logger?: NonNullable<ThrottlerOptions['logger']>
  readonly listen?: (throttler: Throttler) => void
}

const ignore = (): void => {}
const EVENTS = ['blocked', 'unblocked', 'rejections', 'sync', 'syncFailed', 'storeDown', 'storeUp', 'overflow', 'nodes', 'warning'] as const

class Weir implements Contender {
  readonly #throttler: Throttler

  constructor(policies: readonly PolicyOptions[], connected: boolean, heard: Heard = {}) {
    const { logger, listen } = heard
    this.#throttler = createThrottler({
      policies,
      maxKeys: 2_000_000,
      ...(connected && { store: memoryStore() }),
      ...(logger !== undefined && { logger }),
    })
    listen?.(this.#throttler)
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#throttler.check(keys[ids[i] as number] as string).allowed) allowed++
    return allowed
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#throttler.check(keyOf(ids[i] as number)).allowed) allowed++
    return allowed
  }
}

/** Listens on the process's channels, but only during its own decisions, because every throttler publishes on them. */
class Subscribed implements Contender {
  readonly #weir: Weir

  constructor(weir: Weir) {
    this.#weir = weir
  }

  #while(decide: () => number): number {
    for (const event of EVENTS) subscribe(`weir:${event}`, ignore)
    try {
      return decide()
    } finally {
      for (const event of EVENTS) unsubscribe(`weir:${event}`, ignore)
    }
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    return this.#while(() => this.#weir.cached(keys, ids, from, to))
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    return this.#while(() => this.#weir.fresh(ids, from, to))
  }
}

/** rate-limiter-flexible: a promise for each request, which rejects if the request is rejected. */
class Flexible implements Contender {
  readonly #limiter

  constructor(limiter: Pick<RateLimiterMemory, 'consume'>) {
    this.#limiter = limiter
  }

  async cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) {
      try {
        await this.#limiter.consume(keys[ids[i] as number] as string)
        allowed++
      } catch {}
    }
    return allowed
  }

  async fresh(ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) {
      try {
        await this.#limiter.consume(keyOf(ids[i] as number))
        allowed++
      } catch {}
    }
    return allowed
  }
}

/** The token bucket of limiter, one for each key. */
class Limiter implements Contender {
  readonly #limiters = new Map<string, RateLimiter>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  #check(key: string): boolean {
    let limiter = this.#limiters.get(key)
    if (limiter === undefined) {
      limiter = new RateLimiter({ tokensPerInterval: this.#limit, interval: 'hour' })
      this.#limiters.set(key, limiter)
    }
    return limiter.tryRemoveTokens(1)
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

/** The memory store of express-rate-limit, which its middleware awaits. */
class ExpressRateLimit implements Contender {
  readonly #store = new MemoryStore()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
    // The store reads only the window.
    this.#store.init({ windowMs: HOUR } as Parameters<MemoryStore['init']>[0])
  }

  async cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) {
      if ((await this.#store.increment(keys[ids[i] as number] as string)).totalHits <= this.#limit) allowed++
    }
    return allowed
  }

  async fresh(ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) if ((await this.#store.increment(keyOf(ids[i] as number))).totalHits <= this.#limit) allowed++
    return allowed
  }
}

/** The local store of @fastify/rate-limit, an LRU. */
class FastifyRateLimit implements Contender {
  readonly #store = new LocalStore(false, false, 2_000_000)
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  #check(key: string): boolean {
    let allowed = false
    this.#store.incr(
      key,
      (_, { current }) => {
        allowed = current <= this.#limit
      },
      HOUR,
      this.#limit,
    )
    return allowed
  }

  cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  fresh(ids: Uint32Array, from: number, to: number): number {
    let allowed = 0
    for (let i = from; i < to; i++) if (this.#check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

/** The memory limiter of koa-ratelimit. A new one is made for each request, as in its middleware. */
class KoaRatelimit implements Contender {
  readonly #db = new Map<string, unknown>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  async #check(id: string): Promise<boolean> {
    // It returns the remaining units before a key's first request, and after each later one.
    const known = this.#db.size
    const { remaining } = await new MemoryLimiter({ id, db: this.#db, max: this.#limit, duration: HOUR }).get()
    return remaining > 0 || this.#db.size > known
  }

  async cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) if (await this.#check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  async fresh(ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) if (await this.#check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

/** The storage of @nestjs/throttler, which stores the time of each request of a window, and reads all of them at each further request. */
class NestThrottler implements Contender {
  readonly #storage: ThrottlerStorageService
  readonly #limit: number
  readonly #window: number

  /** Loads Nest only if it is measured, because it is large. */
  static async of(limit: number): Promise<Contender> {
    await import('reflect-metadata')
    const { ThrottlerStorageService } = await import('@nestjs/throttler')
    return new NestThrottler(new ThrottlerStorageService(), limit)
  }

  constructor(storage: ThrottlerStorageService, limit: number) {
    this.#storage = storage
    this.#limit = limit
    // In a window of an hour a key would store more and more requests, so that the cost would grow with the limit.
    this.#window = limit === 1 ? HOUR : 1
  }

  async #check(key: string): Promise<boolean> {
    return !(await this.#storage.increment(key, this.#window, this.#limit, 0, 'default')).isBlocked
  }

  async cached(keys: readonly string[], ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) if (await this.#check(keys[ids[i] as number] as string)) allowed++
    return allowed
  }

  async fresh(ids: Uint32Array, from: number, to: number): Promise<number> {
    let allowed = 0
    for (let i = from; i < to; i++) if (await this.#check(keyOf(ids[i] as number))) allowed++
    return allowed
  }
}

const by = (algorithm: Algorithm, limit: number): Weir => new Weir([{ limit, interval: '1h', algorithm }], false)

const hourly = (limit: number, heard: Heard = {}, cooldown: Duration = 0): Weir =>
  new Weir([{ limit, interval: '1h', cooldown }], false, heard)

function memoryOf(limit: number): RateLimiterMemory {
  return new RateLimiterMemory({ points: limit, duration: HOUR / 1000 })
}

/**
 * All contenders by name, each made with a limit per hour. `counted` means that a tool counts instructions, under which everything
 * takes fifty times as long.
 */
export const CONTENDERS: Readonly<Record<string, (limit: number, counted: boolean) => Contender | Promise<Contender>>> = {
  'plain window': (limit) => new Floor(limit),
  'plain log': (limit, counted) => new PlainLog(limit, counted ? 1000 : 30),
  weir: (limit) => new Weir([{ limit, interval: '1h' }], false),
  'weir with a store': (limit) => new Weir([{ limit, interval: '1h' }], true),
  'weir, three levels': (limit) =>
    new Weir(
      [
        { name: 'global', key: 'all', limit: 1e12, interval: '1h' },
        { name: 'user', limit, interval: '1h' },
        { name: 'day', limit: 1e12, interval: '1d' },
      ],
      false,
    ),
  'weir, slidingWindow()': (limit) => by(slidingWindow(), limit),
  'weir, slidingCounter()': (limit) => by(slidingCounter(), limit),
  "weir, fixedWindow({ start: 'first-request' })": (limit) => by(fixedWindow({ start: 'first-request' }), limit),
  'weir, tokenBucket()': (limit) => by(tokenBucket(), limit),
  'weir, tokenBucket({ warmUp })': (limit) => by(tokenBucket({ warmUp: '1m' }), limit),
  'weir, leakyBucket()': (limit) => by(leakyBucket(), limit),
  // With the interval of the others it would store every request. With this one a key's log keeps its length, because it gets and
  // loses requests at the same rate.
  'weir, slidingLog()': (limit, counted) =>
    new Weir([{ limit, interval: limit === 1 ? '1h' : counted ? '1s' : '30ms', algorithm: slidingLog() }], false),
  'weir, listener to throttled': (limit) => hourly(limit, { listen: (throttler) => void throttler.on('rejections', ignore) }),
  'weir, listeners to all events': (limit) =>
    hourly(limit, {
      listen: (throttler) => {
        for (const event of EVENTS) throttler.on(event, ignore)
      },
    }),
  'weir, diagnostics_channel': (limit) => new Subscribed(hourly(limit)),
  'weir, cooldown': (limit) => hourly(limit, {}, '1h'),
  'weir, cooldown, listener to blocked': (limit) => hourly(limit, { listen: (throttler) => void throttler.on('blocked', ignore) }, '1h'),
  'weir, logger': (limit) => hourly(limit, { logger: { debug: ignore, info: ignore, warn: ignore } }),
  'express-rate-limit': (limit) => new ExpressRateLimit(limit),
  '@fastify/rate-limit': (limit) => new FastifyRateLimit(limit),
  'koa-ratelimit': (limit) => new KoaRatelimit(limit),
  'rate-limiter-flexible': (limit) => new Flexible(memoryOf(limit)),
  'rate-limiter-flexible, burst': (limit) => new Flexible(new BurstyRateLimiter(memoryOf(limit), memoryOf(limit))),
  '@nestjs/throttler': (limit) => NestThrottler.of(limit),
  limiter: (limit) => new Limiter(limit),
}
