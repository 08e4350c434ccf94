import { checkReserve, reservingOf } from '../budget/options.ts'
import type { Receipt } from '../budget/receipt.ts'
import type { UsageReader } from '../budget/token-usage.ts'
import type { Costs } from '../decide/costs.ts'
import type { Decision } from '../decide/decision.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { pauseOf } from '../queue/answer-pause.ts'
import type { ScheduleOptions } from '../queue/options.ts'
import { excessOption, invalidOption, WeirError } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import { askAll, hush, isThenable, NoAnswer } from '../report/user-function.ts'
import { loadCode } from '../time/load-code.ts'
import { type AdapterSide, adapterOf } from './adapter-side.ts'
import type { Throttler } from './throttler.ts'

/** Options of `limitedFetch`: those of `acquire`, and these. */
export interface LimitedFetchOptions<Name extends string = string> extends Omit<ScheduleOptions<Name>, 'signal'> {
  /**
   * Chooses the key that a request is counted by: a string, or a function of the URL.
   *
   * @default the host and port of the URL
   * @example
   * limitedFetch(throttler, { key: (url) => url.hostname })
   */
  readonly key?: string | ((url: URL) => string)
  /**
   * Replaces the function that sends requests. It is called with the `this` of the returned function.
   *
   * @default the global `fetch` at the time of each call
   */
  readonly fetch?: typeof fetch
  /**
   * Limits how long a reply of the other side can pause all processes. A duration such as `'1h'`, or milliseconds, at least 0. Longer
   * pauses are cut to it.
   *
   * @default '15m'
   */
  readonly longestPause?: Duration
  /**
   * Reserves the units that a call may use, by policy name: whole numbers of at least 1. A function of the URL, and of the `init` or the
   * `Request` that `fetch` is called with. The call waits until they fit, and settles when the body of its response ends. Slots of
   * `concurrency()` are released then, too. Can't be combined with `cost`. If it throws, the call rejects.
   *
   * @default none: each call uses `cost`
   * @example
   * (url, { body }) => ({ requests: 1, tokens: 4_000 + JSON.parse(String(body)).max_tokens })
   * @see `@weir/core/docs/guides/budgets.md`
   */
  readonly estimate?: (url: URL, init: RequestInit | Request) => Costs<Name> | Promise<Costs<Name>>
  /**
   * Reads the units that a call has really used, such as `usageOf('openai', …)`. It is called with undefined and the response as soon as
   * that has arrived, and then with its JSON body or the JSON of each event of its stream. It returns totals by policy name, of which the
   * largest count, or undefined. Policies without a number count the reserved units. If it fails, Weir logs a warning and ignores the call.
   *
   * Bodies of responses of status 400 and above, of other types of content, and of more than 4 MiB are not read.
   *
   * @default the reserved units count
   */
  readonly usage?: UsageReader<Name>
  /**
   * Sets after how long a reservation settles itself, as `ttl` of `reserve`. Choose it longer than your longest call. A response whose body
   * is never read or cancelled settles then.
   *
   * @default '5m'
   */
  readonly ttl?: Duration
}

const OPTIONS: readonly string[] = [
  'key',
  'fetch',
  'longestPause',
  'estimate',
  'usage',
  'ttl',
  'cost',
  'limit',
  'timeout',
  'priority',
] satisfies (keyof LimitedFetchOptions)[]

/** Codes of errors after which no request was sent, because there was no connection. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The code of an error of `fetch`. Node.js sets it in the cause, Bun in the error, and Deno nowhere. */
function codeOf(error: unknown): unknown {
  const { code, cause } = (error ?? {}) as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } | null }
  return cause?.code ?? code
}

/**
 * A `fetch` that waits for its turn, see `acquire`, and follows the other side's limits. If an answer shows that no request is left, the
 * key is blocked in all processes until requests are left again: a 429, 403 or 503 with `Retry-After`, `RateLimit` fields, or
 * `X-RateLimit-Remaining: 0` with a reset. A 429 without a time blocks it for a second. Dates are relative to the other side's clock (the
 * answer's `Date`). The answer itself is returned unchanged, and no request is repeated.
 *
 * With `estimate`, each call reserves units and settles them by its real use. If there is no connection, they return. A call that fails
 * later counts in full, because it may have been processed, or by the use that its response has shown until then. The response has the same
 * status, headers and body, which is passed on as fast as you read it.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`. Each call rejects as `acquire` or `fetch` do
 *
 * @example
 * const get = limitedFetch(throttler, { timeout: '10s' })
 * const response = await get('https://api.example.com/users')
 */
export function limitedFetch<Name extends string>(
  throttler: Throttler<Name, never>,
  options: LimitedFetchOptions<NoInfer<Name>> = {},
): typeof fetch {
  const side = adapterOf(throttler)
  checkOptions('limitedFetch', options, OPTIONS, 'options such as { timeout: "5s" }')
  const { key, fetch: request, longestPause = '15m', estimate, usage, ttl, ...acquire } = options
  if (key !== undefined && typeof key !== 'string' && typeof key !== 'function')
    throw invalidOption('key', key, 'a string, or a function of the URL')
  if (request !== undefined && typeof request !== 'function') throw invalidOption('fetch', request, 'a function such as fetch')
  const longest = parseDuration(longestPause, 'longestPause', 0)
  const reserving = reservingBy(options, side)
  return async function (this: unknown, input, init) {
    // Packages such as undici have a Request of their own.
    const asked = typeof input === 'object' && 'url' in input ? input : undefined
    const url = new URL(asked?.url ?? (input as string | URL))
    const counted = typeof key === 'function' ? key(url) : (key ?? url.host)
    // As in `fetch`: null removes the request's own signal.
    const signal = init?.signal === undefined ? asked?.signal : init.signal
    const reserved = reserving && (await reserving.begin(url, init?.body == null && asked !== undefined ? asked : (init ?? {})))
    const decision = await throttler.acquire(counted, { ...acquire, ...reserved, ...(signal && { signal }) })
    const receipt = reserving?.receiptOf(decision)
    let response: Response
    try {
      response = await (request === undefined ? globalThis.fetch(input, init) : request.call(this, input, init))
    } catch (error) {
      if (NOT_SENT.has(codeOf(error))) receipt?.cancel()
      else receipt?.settle()
      throw error
    } finally {
      if (receipt === undefined) throttler.release(decision)
    }
    // Tests often replace answers by objects without headers.
    if (typeof response?.headers?.get !== 'function') {
      receipt?.settle()
      return response
    }
    const answer = receipt === undefined ? response : (reserving as Reserving<Name>).settling(response, receipt)
    const pause = Math.min(longest, pauseOf(response.status, response.headers, side.clock.now()))
    try {
      // A new block would replace an existing one, which may last longer.
      if (pause > 0 && pause > throttler.peek(counted, 0).retryAfterMs) throttler.block(counted, Math.ceil(pause))
    } catch (error) {
      // An answer that has arrived is returned even if the throttler was closed meanwhile.
      if ((error as { code?: unknown }).code !== 'WEIR_CLOSED') throw error
    }
    return answer
  }
}

/** The calls of a `limitedFetch` with an estimate. */
interface Reserving<Name extends string> {
  begin(url: URL, init: RequestInit | Request): Promise<{ readonly cost: Costs<Name> }>
  receiptOf(decision: Decision<Name>): Receipt<Name>
  settling(response: Response, receipt: Receipt<Name>): Response
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
function reservingBy<Name extends string>(
  { estimate, usage, ttl, cost }: LimitedFetchOptions<Name>,
  side: AdapterSide<Name, never>,
): Reserving<Name> | undefined {
  if (estimate === undefined) {
    for (const [name, value] of Object.entries({ usage, ttl }))
      if (value !== undefined) throw excessOption(name, 'it applies only with "estimate"')
    return undefined
  }
  if (typeof estimate !== 'function') throw invalidOption('estimate', estimate, 'a function such as () => ({ tokens: 900 })')
  if (usage !== undefined && typeof usage !== 'function') throw invalidOption('usage', usage, "a function such as usageOf('openai', …)")
  if (cost !== undefined) throw excessOption('cost', '"estimate" returns the costs')
  const options = ttl === undefined ? {} : { ttl }
  reservingOf(options)
  let code: typeof import('./settling-response.ts') | undefined
  return {
    async begin(url, init) {
      code ??= await loadCode(() => import('./settling-response.ts'))
      const cost = await estimate(url, init)
      checkReserve('estimate', { cost })
      return { cost }
    },
    receiptOf: (decision) => side.receiptOf(decision, options),
    settling(response, receipt) {
      const read = (value: unknown): void => {
        const used = usage && askAll(usage, value, response)
        if (used instanceof NoAnswer || isThenable(used)) warn(used, side)
        else if (used !== undefined) {
          // Reading it may throw, which must not break the body.
          const failed = askAll((totals: Costs<Name>) => receipt.used(totals), used as Costs<Name>)
          if (failed !== undefined) warn(failed as NoAnswer, side)
        }
      }
      return (code as NonNullable<typeof code>).settlingResponse(response, receipt, read)
    },
  }
}

function warn(used: object, side: Pick<AdapterSide, 'warn'>): void {
  hush(used)
  const what = used instanceof NoAnswer ? used.problem : 'returned a promise'
  const cause = used instanceof NoAnswer ? used.error : undefined
  const message = `Option "usage" of limitedFetch() ${what}, which is ignored. Return units by policy name, or undefined.`
  side.warn(new WeirError('WEIR_WARN_OPTION_FUNCTION_FAILED', message, { cause }), 'usage')
}
