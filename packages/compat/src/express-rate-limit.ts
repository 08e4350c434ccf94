import type { Throttler, Store as WeirStore } from '@weir/core'
import { WeirError } from '@weir/core'
import { checkOptions, invalidOption, missingOption } from '@weir/core/adapter'
import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit'
import { hitsOf, type Window, Windows, wholeLimit } from './windows.ts'

/** Options of `expressRateLimitStore`. */
export interface ExpressRateLimitStoreOptions {
  /**
   * Sets the number up to which the store counts a key: at least 1, and at least the middleware's `limit`. All further hits are reported as
   * one more.
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

/** The hits of a key. With hono-rate-limiter, the end of the window must not be undefined. */
type Hits = ClientRateLimitInfo & { resetTime: Date }

/** A store of express-rate-limit, express-slow-down or hono-rate-limiter. */
export interface ExpressRateLimitStore extends Required<Omit<Store, 'localKeys'>> {
  /** Sets the limit. The middleware calls it. */
  init(
    options: Pick<Options, 'windowMs'> & Partial<Pick<Options, 'skipFailedRequests' | 'skipSuccessfulRequests'>> & { limit?: unknown },
  ): void
  /** Counts a request by the counts of this process. */
  increment(key: string): Hits
  /** Takes back a request of this process. If the key was at its limit, other processes allow it again within about a second. */
  decrement(key: string): void
  /** Resolves with the hits of all processes. Undefined if the key has none in the running window. */
  get(key: string): Promise<Hits | undefined>
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
  /** Whether the middleware takes requests back, even rejected ones. */
  #takesBack = false
  /** Rejected requests of each key that may be taken back. The throttler does not count them: it would sync each one immediately. */
  readonly #rejected = new Map<string, number>()
  /** The number of the window to which the rejected requests belong. */
  #running = 0
  /** Keys that are about to be synced. */
  readonly #shared = new Set<string>()

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
      if (!(typeof windowMs === 'number' && windowMs >= 30)) throw invalidOption('windowMs', windowMs, 'milliseconds, at least 30')
      const name = this.prefix || 'default'
      const limit = wholeLimit(this.#limit ?? limitOf(given))
      // Hits are reported up to `limit + 1`, and would never exceed a higher limit of the middleware.
      if (typeof given === 'number' && given >= limit + 1 && this.#limit !== undefined) {
        throw invalidOption('limit', this.#limit, `at least ${given}, the limit of the middleware`)
      }
      const window = this.#windows.open(name, limit, windowMs)
      if (window.policy.interval !== windowMs || window.policy.limit !== limit) {
        const what = `Two limits of a store have the prefix ${JSON.stringify(this.prefix)}`
        throw new WeirError('WEIR_DUPLICATE_POLICY', `${what}. Give each its own expressRateLimitStore(store, { prefix: "login" }).`)
      }
      this.#window = window
      this.#error = undefined
      this.#takesBack ||= skipFailedRequests === true || skipSuccessfulRequests === true
    } catch (error) {
      // express-rate-limit only logs it, so that each request must report it.
      this.#error = error
      throw error
    }
  }

  increment(key: string): Hits {
    const { policy } = this.#opened
    const decision = this.#opened.hit(key, policy.limit)
    if (this.#takesBack) this.#note(`${key}`, decision.allowed)
    return { totalHits: hitsOf(decision, policy.limit), resetTime: this.#in(decision.resetAfterMs) }
  }

  /** The middleware takes back rejected requests too. These must return no units of allowed ones. */
  #note(key: string, allowed: boolean): void {
    const running = Math.floor(Date.now() / Number(this.#opened.policy.interval))
    if (running !== this.#running) this.#rejected.clear()
    this.#running = running
    // The key was reset, or requests of other processes were taken back.
    if (allowed) this.#rejected.delete(key)
    else this.#rejected.set(key, (this.#rejected.get(key) ?? 0) + 1)
  }

  decrement(key: string): void {
    const window = this.#window
    // An error would end the process, because the middleware ignores the result. Requests may end after `shutdown`.
    if (window === undefined || this.throttler.state === 'closed') return
    const rejected = this.#rejected.get(`${key}`) ?? 0
    if (rejected > 0) {
      this.#rejected.set(`${key}`, rejected - 1)
      return
    }
    const wasFull = !window.peek(key, window.policy.limit).allowed
    const back = this.throttler.refund(`${key}`, 1, { policy: window.policy.name })
    if (wasFull && back > 0) this.#share(`${key}`)
  }

  /** Syncs a key that is no longer full, at most once a second. Otherwise other processes would reject it until the window ends. */
  #share(key: string): void {
    if (this.#shared.has(key)) return
    this.#shared.add(key)
    setTimeout(() => {
      this.#shared.delete(key)
      // usage() syncs the key in all processes. While the store is down, there is nothing to share.
      this.get(key).catch(() => {})
    }, 1000).unref()
  }

  async get(key: string): Promise<Hits | undefined> {
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
    if (this.#window !== undefined && this.#error === undefined) return this.#window
    throw (
      this.#error ?? new WeirError('WEIR_INVALID_OPTION', 'This store has no limit yet. Pass it as "store" to rateLimit(), or call init().')
    )
  }

  #in(ms: number): Date {
    return new Date(Date.now() + ms)
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
