import { parseList } from 'structured-headers'
import { type Duration, parseDuration } from '../options/duration.ts'
import { checkNames } from '../options/names.ts'
import { invalidOption } from '../report/errors.ts'
import type { Clock } from '../time/clock.ts'
import type { ScheduleOptions } from './options.ts'

/** What requests to others are limited by: a throttler. */
export interface FetchLimiter {
  readonly clock: Clock
  acquire(key: string, options?: ScheduleOptions): Promise<unknown>
  release(decision: unknown): void
  peek(key: string, cost: number): { readonly retryAfter: number }
  block(key: string, duration: Duration): void
}

/** Options of `limitedFetch`: those of `acquire`, and these. */
export interface LimitedFetchOptions extends Omit<ScheduleOptions, 'signal'> {
  /** What requests are counted by: a string, or a function of the URL. Default: its host and port. */
  readonly key?: string | ((url: URL) => string)
  /** Makes the requests, with the `this` that the returned function is called with. Default: the global `fetch`, as it is at each call. */
  readonly fetch?: typeof fetch
  /** How long the other side may make all nodes pause at most. Default `'15m'`. */
  readonly longestPause?: Duration
}

const OPTIONS: readonly string[] = [
  'key',
  'fetch',
  'longestPause',
  'cost',
  'limit',
  'timeout',
  'priority',
] satisfies (keyof LimitedFetchOptions)[]

/** Answers that say that too many requests came. */
const TOO_MANY: ReadonlySet<number> = new Set([403, 429, 503])

/** Milliseconds to pause after a 429 that does not say for how long. */
const USUAL_PAUSE = 1_000

/** Numbers of seconds above it are times since the epoch; GitHub sends such. */
const EPOCH_SECONDS = 1_000_000_000

/**
 * A `fetch` that waits for its turn, see `acquire`, and learns from the other side: an answer that says that no request is left
 * (429 or 503 with `Retry-After`, `RateLimit` fields, `X-RateLimit-Remaining: 0`) blocks the key at all nodes until there are
 * some again. The answer itself is returned as it is; no request is made twice.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`; each call rejects as `acquire` or `fetch` do
 *
 * @example
 * const get = limitedFetch(throttler, { timeout: '10s' })
 * const response = await get('https://api.example.com/users')
 */
export function limitedFetch(throttler: FetchLimiter, options: LimitedFetchOptions = {}): typeof fetch {
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object such as { timeout: "5s" }')
  checkNames('limitedFetch', options, OPTIONS)
  const { key, fetch: request, longestPause = '15m', ...acquire } = options
  if (key !== undefined && typeof key !== 'string' && typeof key !== 'function')
    throw invalidOption('key', key, 'a string, or a function of the URL')
  if (request !== undefined && typeof request !== 'function') throw invalidOption('fetch', request, 'a function such as fetch')
  const longest = parseDuration(longestPause, 'longestPause', 0)
  return async function (this: unknown, input, init) {
    const url = new URL(input instanceof Request ? input.url : input)
    const counted = typeof key === 'function' ? key(url) : (key ?? url.host)
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    const decision = await throttler.acquire(counted, { ...acquire, ...(signal && { signal }) })
    let response: Response
    try {
      response = await (request === undefined ? globalThis.fetch(input, init) : request.call(this, input, init))
    } finally {
      throttler.release(decision)
    }
    const pause = Math.min(longest, pauseOf(response.status, response.headers, throttler.clock.now()))
    try {
      // A block replaces the one that is there, which may last longer.
      if (pause > 0 && pause > throttler.peek(counted, 0).retryAfter) throttler.block(counted, Math.ceil(pause))
    } catch (error) {
      // An answer that has arrived is returned, although the throttler was closed meanwhile.
      if ((error as { code?: unknown }).code !== 'WEIR_CLOSED') throw error
    }
    return response
  }
}

/**
 * Milliseconds for which an answer tells to make no request; 0 when it tells no such thing.
 *
 * @param now wall clock, milliseconds
 */
export function pauseOf(status: number, headers: Headers, now: number): number {
  const after = TOO_MANY.has(status) ? retryAfter(headers.get('retry-after'), now) : undefined
  return Math.max(0, after ?? fieldsPause(headers, now) ?? (status === 429 ? USUAL_PAUSE : 0))
}

/** Seconds, or a date (RFC 9110, 10.2.3). */
function retryAfter(field: string | null, now: number): number | undefined {
  if (field === null) return undefined
  if (/^\d{1,15}$/.test(field)) return 1_000 * Number(field)
  // biome-ignore lint/style/noRestrictedGlobals: it reads a date, not the time.
  const date = /[A-Za-z]/.test(field) ? Date.parse(field) : Number.NaN
  return Number.isNaN(date) ? undefined : date - now
}

/** The longest pause that the fields of a policy without units left tell; undefined when they tell none. */
function fieldsPause(headers: Headers, now: number): number | undefined {
  const pauses = [draftPause(headers.get('ratelimit')), pairPause(headers, 'ratelimit', now), pairPause(headers, 'x-ratelimit', now)]
  const known = pauses.filter((pause) => pause !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** `RateLimit` as of draft 8 and later (`"name";r=0;t=30`), or of draft 7 (`limit=10, remaining=0, reset=30`). */
function draftPause(field: string | null): number | undefined {
  if (field === null) return undefined
  let longest: number | undefined
  try {
    for (const [, parameters] of parseList(field)) {
      const seconds = parameters.get('t')
      if (parameters.get('r') === 0 && typeof seconds === 'number') longest = Math.max(longest ?? 0, 1_000 * seconds)
    }
  } catch {
    // Not of this form: then it says nothing.
  }
  const seconds = /\bremaining=0(?=[,\s]|$)/.test(field) ? /\breset=(\d{1,10})/.exec(field)?.[1] : undefined
  return seconds === undefined ? longest : 1_000 * Number(seconds)
}

/** `…-Remaining` and `…-Reset` of older drafts, and of those who never had one. */
function pairPause(headers: Headers, prefix: string, now: number): number | undefined {
  const reset = headers.get(`${prefix}-reset`)
  if (headers.get(`${prefix}-remaining`)?.trim() !== '0' || reset === null || !/^\d{1,12}(\.\d+)?$/.test(reset.trim())) return undefined
  const seconds = Number(reset)
  return seconds > EPOCH_SECONDS ? 1_000 * seconds - now : 1_000 * seconds
}
