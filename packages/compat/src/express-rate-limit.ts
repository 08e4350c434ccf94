import { type Decision, type Store, type Throttler, WeirError } from '@weir/core'
import { checkOptions, countedKey, invalidOption, missingOption, outcomeOf } from '@weir/core/adapter'
import { hitsOf, intervalOf, type Window, Windows, wholeLimit } from './windows.ts'

/** Options of `expressRateLimitStore`. */
export interface ExpressRateLimitStoreOptions {
  /**
   * Sets the number of hits up to which the store counts a key: at least 1, and at least the middleware's own `limit`. Required if that is
   * a function, and with express-slow-down.
   *
   * For a function, use the highest limit that it returns. For express-slow-down, use the number of hits from which on the delay is the
   * longest. All further hits are reported as one more.
   *
   * @default the `limit` of the middleware
   */
  readonly limit?: number
  /**
   * Names the limit in the store, in metrics and on screens: up to 64 printable ASCII characters. Limits with one prefix share their counts,
   * so each middleware of a store needs its own. Without it, the name is `default`.
   *
   * @default ''
   */
  readonly prefix?: string
}

/** A key's hits in the running window. */
interface Hits {
  readonly totalHits: number
  readonly resetTime: Date
}

/** The options of a middleware that a store reads. */
interface Given {
  readonly windowMs: number
  /** A number, or a function of the framework's request. */
  readonly limit?: unknown
  readonly skipFailedRequests?: boolean | undefined
  readonly skipSuccessfulRequests?: boolean | undefined
}

/** A store of express-rate-limit, express-slow-down or hono-rate-limiter. Its types need none of these packages. */
export interface ExpressRateLimitStore {
  readonly prefix: string
  /** Sets the limit. The middleware calls it. */
  init(options: Given): void
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
 * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * rateLimit({ windowMs: 60_000, limit: 100, store: expressRateLimitStore(redisStore('redis://localhost:6379')) })
 */
export function expressRateLimitStore(store: Store, options: ExpressRateLimitStoreOptions = {}): ExpressRateLimitStore {
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
  /** The end of the running window, and a part of the decisions in it. */
  #end = new Date(0)
  #outcome: object | undefined
  /** Whether the middleware takes requests back, even rejected ones. */
  #takesBack = false
  /** Rejected requests of keys in the running window. They aren't counted, so taking one back must not give units back. */
  readonly #rejected = new Map<string, { requests: number; readonly since: number }>()
  #rejectedUntil = 0
  /** Keys that are about to be synced. */
  readonly #shared = new Set<string>()

  constructor(store: Store, options: ExpressRateLimitStoreOptions) {
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

  init({ windowMs, limit: given, skipFailedRequests, skipSuccessfulRequests }: Given): void {
    try {
      const name = this.prefix || 'default'
      const limit = wholeLimit(this.#limit ?? limitOf(given))
      // Hits are reported up to `limit + 1`, and would never exceed a higher limit of the middleware.
      if (typeof given === 'number' && given >= limit + 1 && this.#limit !== undefined) {
        throw invalidOption('limit', this.#limit, `at least ${given}, the limit of the middleware`)
      }
      const window = this.#windows.open(name, limit, intervalOf('windowMs', windowMs))
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
    const window = this.#opened
    const { limit } = window.policy
    const decision = window.hit(key, limit)
    if (!decision.allowed && this.#takesBack) this.#reject(countedKey(decision.key), Number(window.policy.interval))
    return { totalHits: hitsOf(decision, limit), resetTime: this.#endOf(decision) }
  }

  #reject(key: string, windowMs: number): void {
    const now = Date.now()
    if (now >= this.#rejectedUntil) {
      this.#rejected.clear()
      this.#rejectedUntil = now - (now % windowMs) + windowMs
    }
    const rejected = this.#rejectedOf(key)
    if (rejected !== undefined) rejected.requests++
    else if (this.#rejected.size < MOST_REJECTED) this.#rejected.set(key, { requests: 1, since: this.#resetAt(key) })
  }

  /** The rejected requests of a key since its last reset. */
  #rejectedOf(key: string): { requests: number } | undefined {
    const rejected = Date.now() < this.#rejectedUntil ? this.#rejected.get(key) : undefined
    if (rejected === undefined || rejected.since === this.#resetAt(key)) return rejected
    this.#rejected.delete(key)
    return undefined
  }

  #resetAt(key: string): number {
    return this.#window?.resetAt(key) ?? 0
  }

  decrement(key: string): void {
    const window = this.#window
    // Requests may end after `shutdown`.
    if (window === undefined || this.throttler.state === 'closed') return
    const counted = countedKey(`${key}`)
    const rejected = this.#rejectedOf(counted)
    if (rejected !== undefined && rejected.requests > 0) {
      rejected.requests--
      return
    }
    const wasFull = !window.peek(counted, window.policy.limit).allowed
    const back = this.throttler.refund(counted, 1, { policy: window.policy.name })
    if (wasFull && back > 0) this.#share(counted)
  }

  /** Syncs a key that is no longer full, at most once a second. Otherwise other processes would reject it until the window ends. */
  #share(key: string): void {
    if (this.#shared.has(key) || this.#shared.size >= MOST_SHARED) return
    this.#shared.add(key)
    setTimeout(() => {
      this.#shared.delete(key)
      // usage() syncs the key in all processes. While the store is down, there is nothing to share.
      this.get(key).catch(() => {})
    }, 1000).unref()
  }

  async get(key: string): Promise<Hits | undefined> {
    const [usage] = await this.throttler.usage(`${key}`, this.#choice)
    return usage?.seen === true ? { totalHits: usage.used, resetTime: new Date(Date.now() + usage.resetAfterMs) } : undefined
  }

  resetKey(key: string): void {
    this.throttler.reset(`${key}`, this.#choice)
  }

  resetAll(): void {
    this.throttler.resetAll(this.#choice)
  }

  shutdown(): Promise<void> {
    return this.throttler.close()
  }

  /** The policy of this limit, which the application may have removed. */
  get #choice(): { readonly policy: string } {
    const { policy } = this.#opened
    this.#windows.current()
    return { policy: policy.name }
  }

  get #opened(): Window {
    if (this.#window !== undefined && this.#error === undefined) return this.#window
    throw (
      this.#error ?? new WeirError('WEIR_INVALID_OPTION', 'This store has no limit yet. Pass it as "store" to rateLimit(), or call init().')
    )
  }

  /** Computed once for all allowed requests of a window, because the time of the clock takes a third of a decision. */
  #endOf(decision: Decision): Date {
    const outcome = outcomeOf(decision)
    if (decision.allowed && outcome !== undefined && outcome === this.#outcome) return this.#end
    const end = new Date(Date.now() + decision.resetAfterMs)
    // The store's clock may still correct an end from before the first sync.
    if (decision.allowed && this.throttler.state === 'synced') [this.#outcome, this.#end] = [outcome, end]
    return end
  }
}

/** The most keys that are synced per second, because each takes several calls to the store. */
const MOST_SHARED = 100

/** The most keys with rejected requests: as many as a throttler has keys. */
const MOST_REJECTED = 250_000

/** The limit of the middleware. It calls a function itself, and express-slow-down sets 0. */
function limitOf(given: unknown): number {
  if (typeof given === 'number' && given >= 1) return given
  if (typeof given !== 'function' && given !== 0) throw invalidOption('limit', given, 'a number of at least 1')
  const [reason, value] =
    given === 0
      ? ['0', '1, or for express-slow-down the number of hits from which on the delay is the longest']
      : ['a function', 'the highest limit that it returns']
  throw missingOption('limit', `The middleware's limit is ${reason}. Use expressRateLimitStore(store, { limit }) with ${value}.`)
}
