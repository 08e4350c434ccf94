import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { Store, Throttler } from '@weir/core'
import { invalidOption } from '@weir/core/adapter'
import { hitsOf, intervalOf, Windows, wholeLimit } from './windows.ts'

/** A `store` of @fastify/rate-limit. */
export interface FastifyWeirStore extends FastifyRateLimitStoreCtor {
  /** The throttler of all limits of the store's value, for metrics, the dashboard, `block` and so on. */
  readonly throttler: Throttler
}

type Incr = FastifyRateLimitStore['incr']

/** The options that a store reads, of the plugin or of a route. */
interface Options {
  readonly ban?: number
  readonly continueExceeding?: boolean
  readonly exponentialBackoff?: boolean
  readonly routeInfo?: { readonly method?: string | readonly string[]; readonly url?: string }
}

/**
 * A `store` for @fastify/rate-limit 11. Each process counts in memory, and counts are synced in the background.
 *
 * Windows begin at whole multiples of `timeWindow`. `continueExceeding` and `exponentialBackoff` are not supported.
 *
 * @param store a value of `redisStore(…)` or another store of Weir
 * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_INVALID_OPTION`
 *
 * @example
 * await app.register(rateLimit, { max: 100, timeWindow: '1 minute', store: fastifyRateLimitStore(redisStore('redis://localhost:6379')) })
 */
export function fastifyRateLimitStore(store: Store): FastifyWeirStore {
  let windows = Windows.at(store)
  return class WeirRateLimitStore {
    static get throttler(): Throttler {
      return windows.throttler
    }

    readonly #prefix: string
    readonly #ban: number
    /** Limits without a route, in the order in which they were made. */
    #unnamed = 0

    constructor(options: Options, prefix = '') {
      for (const option of ['continueExceeding', 'exponentialBackoff'] as const) {
        if (options[option] === true) throw invalidOption(option, true, 'false with this store', 'Or use cooldown of @weir/fastify.')
      }
      // A store may outlive an application, which closes the throttler.
      if (windows.throttler.state === 'closed') windows = Windows.at(store)
      this.#prefix = prefix
      this.#ban = Math.max(0, options.ban ?? 0)
    }

    incr(key: string, callback: Parameters<Incr>[1], timeWindow: number, max: number): void {
      this.#answer(true, key, callback, timeWindow, max)
    }

    read(key: string, callback: Parameters<Incr>[1], timeWindow: number, max: number): void {
      this.#answer(false, key, callback, timeWindow, max)
    }

    child(routeOptions: object): FastifyRateLimitStore {
      const options = routeOptions as Options
      const { method, url } = options.routeInfo ?? {}
      const own = url === undefined ? `#${++this.#unnamed}` : `${method}${url}`
      return new WeirRateLimitStore(options, `${this.#prefix}${own} `)
    }

    #answer(counts: boolean, key: string, callback: Parameters<Incr>[1], timeWindow: number, max: number): void {
      let result: { current: number; ttl: number }
      try {
        // A function of the application may return a string, which the plugin compares as a number.
        const limit = wholeLimit(Number(max) + this.#ban, 'max')
        const window = windows.ofRequest('fastify-rate-limit', limit, intervalOf('timeWindow', timeWindow))
        const decision = counts ? window.hit(this.#prefix + key, limit) : window.peek(this.#prefix + key, limit)
        const current = counts ? hitsOf(decision, limit) : limit - decision.remaining
        result = { current, ttl: current > 0 ? decision.resetAfterMs : 0 }
      } catch (error) {
        callback(error as Error)
        return
      }
      callback(null, result)
    }
  }
}
