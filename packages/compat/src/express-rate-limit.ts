import type { Throttler, Store as WeirStore } from '@weir/core'
import { WeirError } from '@weir/core'
import { checkOptions, invalidOption, missingOption } from '@weir/core/adapter'
import type { ClientRateLimitInfo, IncrementResponse, Options, Store } from 'express-rate-limit'
import { hitsOf, type Window, Windows, wholeLimit } from './windows.ts'

/** Options of `expressRateLimitStore`. */
export interface ExpressRateLimitStoreOptions {
  /**
   * Sets the number up to which the store counts a key: at least 1. All further hits are reported as one more.
   *
   * Required if the middleware's own `limit` is a function (then use the highest limit that it returns), and with express-slow-down (then
   * use the number of hits from which on the delay is the longest).
   *
   * @default the `limit` of the middleware
   */
  readonly limit?: number
  /**
   * Names the limit in the store, in metrics and on screens: up to 64 printable ASCII characters. Limits with one prefix share their counts,
   * so each middleware of a store needs its own.
   *
   * @default '', and the name is 'default'
   */
  readonly prefix?: string
}

/** A store of express-rate-limit, express-slow-down or hono-rate-limiter. */
export interface ExpressRateLimitStore extends Required<Omit<Store, 'localKeys'>> {
  /** Sets the limit. The middleware calls it. */
  init(options: Pick<Options, 'windowMs'> & Partial<Pick<Options, 'limit' | 'skipFailedRequests' | 'skipSuccessfulRequests'>>): void
  /** Counts a request by the counts of this process. */
  increment(key: string): IncrementResponse
  /** Takes back a counted request. */
  decrement(key: string): void
  /** Resolves with the hits of all processes. Undefined if the key has none in the running window. */
  get(key: string): Promise<ClientRateLimitInfo | undefined>
  resetKey(key: string): void
  resetAll(): void
  /** Sends the last counts and closes the connection, for all limits of the store's value. */
  shutdown(): Promise<void>
  readonly localKeys: false
  /** The throttler of all limits of the store's value, for metrics, the dashboard, `block` and so on. */
  readonly throttler: Throttler
}

/**
 * A store for `rateLimit` of express-rate-limit 8, `slowDown` of express-slow-down and `rateLimiter` of hono-rate-limiter. Each process
 * counts in memory, and counts are synced in the background.
 *
 * Windows begin at whole multiples of `windowMs`, for all keys at the same time. Each middleware needs a store of its own. Pass the same
 * value of `redisStore(…)` to all, with different prefixes.
 *
 * @param store a value of `redisStore(…)` or another store of Weir
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * rateLimit({ windowMs: 60_000, limit: 100, store: expressRateLimitStore(redisStore('redis://localhost:6379')) })
 */
export function expressRateLimitStore(store: WeirStore, options: ExpressRateLimitStoreOptions = {}): ExpressRateLimitStore {
  return new WeirRateLimitStore(store, options)
}

class WeirRateLimitStore implements ExpressRateLimitStore {
  readonly localKeys = false
  readonly prefix: string
  readonly throttler: Throttler
  readonly #windows: Windows
  readonly #limit: number | undefined
  #window: Window | undefined
  #error: unknown
  #end = new Date(0)
  /** Whether requests are taken back, even rejected ones. */
  #takesBack = false

  constructor(store: WeirStore, options: ExpressRateLimitStoreOptions) {
    checkOptions('expressRateLimitStore', options, ['limit', 'prefix'], 'options such as { prefix: "login" }')
    const { limit, prefix = '' } = options
    if (limit !== undefined && !(typeof limit === 'number' && limit >= 1)) throw invalidOption('limit', limit, 'a number of at least 1')
    if (typeof prefix !== 'string' || !/^[ -~]{0,64}$/.test(prefix))
      throw invalidOption('prefix', prefix, 'up to 64 printable ASCII characters')
    this.prefix = prefix
    this.#limit = limit
    this.#windows = Windows.at(store)
    this.throttler = this.#windows.throttler
  }

  init({ windowMs, limit: given, skipFailedRequests, skipSuccessfulRequests }: Parameters<ExpressRateLimitStore['init']>[0]): void {
    try {
      const name = this.prefix || 'default'
      const limit = wholeLimit(this.#limit ?? limitOf(given))
      const window = this.#windows.open(name, limit, windowMs)
      if (window.policy.interval !== windowMs || window.policy.limit !== limit) {
        const what = `Two limits of a store have the prefix ${JSON.stringify(this.prefix)}`
        throw new WeirError('WEIR_DUPLICATE_POLICY', `${what}. Give each its own expressRateLimitStore(store, { prefix: "login" }).`)
      }
      this.#window = window
      this.#takesBack = skipFailedRequests === true || skipSuccessfulRequests === true
    } catch (error) {
      // express-rate-limit only logs it, so that each request must report it.
      this.#error ??= error
      throw error
    }
  }

  increment(key: string): IncrementResponse {
    const window = this.#opened
    const { limit, name } = window.policy
    const decision = window.hit(key, limit)
    // The middleware takes back a rejected request too, so that it must be counted.
    if (!decision.allowed && this.#takesBack) this.throttler.charge(`${key}`, 1, { policy: name })
    return { totalHits: hitsOf(decision, limit), resetTime: this.#in(decision.resetAfterMs) }
  }

  decrement(key: string): void {
    this.throttler.refund(`${key}`, 1, { policy: this.#opened.policy.name })
  }

  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const [usage] = await this.throttler.usage(`${key}`, { policy: this.#opened.policy.name })
    return usage?.seen === true ? { totalHits: usage.used, resetTime: this.#in(usage.resetAfterMs) } : undefined
  }

  resetKey(key: string): void {
    this.throttler.reset(`${key}`, { policy: this.#opened.policy.name })
  }

  resetAll(): void {
    this.throttler.resetAll({ policy: this.#opened.policy.name })
  }

  shutdown(): Promise<void> {
    return this.throttler.close()
  }

  get #opened(): Window {
    if (this.#window !== undefined) return this.#window
    throw (
      this.#error ?? new WeirError('WEIR_INVALID_OPTION', 'This store has no limit yet. Pass it as "store" to rateLimit(), or call init().')
    )
  }

  /** One object for all requests of a window, whose ends differ by the rounding of times at most. */
  #in(ms: number): Date {
    const end = Date.now() + ms
    if (Math.abs(end - this.#end.getTime()) > 1) this.#end = new Date(end)
    return this.#end
  }
}

/** The limit of the middleware. It calls a function itself, and express-slow-down sets 0. */
function limitOf(given: unknown): number {
  if (typeof given === 'number' && given >= 1) return given
  if (typeof given !== 'function' && given !== 0) throw invalidOption('limit', given, 'a number of at least 1')
  const [reason, value] =
    given === 0 ? ['0', 'the number of hits from which on the delay is the longest'] : ['a function', 'the highest limit that it returns']
  throw missingOption('limit', `The middleware's limit is ${reason}. Use expressRateLimitStore(store, { limit }) with ${value}.`)
}
