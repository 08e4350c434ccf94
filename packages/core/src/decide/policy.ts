import type { Algorithm, AnyAlgorithm, Coordination, SlotAlgorithm } from '../algorithms/algorithm.ts'
import type { FailMode, MeterPolicy } from '../algorithms/meter.ts'

export type { Slots } from '../algorithms/algorithm.ts'

import type { Growth } from '../keys/offences.ts'
import type { Duration } from '../options/duration.ts'
import type { IntervalOption } from '../options/interval.ts'
import type { Awaitable } from '../report/user-function.ts'
import type { Costs } from './costs.ts'
import type { EscalatingCooldown } from './escalating.ts'
import type { KeyOption, MatchOption } from './request-options.ts'

/** The key of policies that count all requests together. */
export const ALL_KEY = 'all'

/**
 * A rule as you write it. Durations are milliseconds or strings such as `'500ms'`, `'10s'`, `'1m'`, `'1h'`. An invalid value throws
 * `WEIR_INVALID_OPTION`, an unknown name `WEIR_UNKNOWN_OPTION`.
 */
export interface PolicyOptions<Req = unknown, Name extends string = string> {
  /**
   * Names the policy in decisions, headers, metrics and the store: 1 to 64 printable ASCII characters.
   *
   * Throws `WEIR_DUPLICATE_POLICY` if two policies of a throttler, or two different rules at one store, have the same name.
   *
   * @default 'default'
   */
  readonly name?: Name
  /**
   * Sets how many requests (or units of `cost`) each key may send per `interval`: 1 to 2^53 - 1. A function may also return 0 (reject all)
   * or `Infinity` (allow all).
   *
   * A function returns the limit of a request, such as the limit in the customer's contract. If it returns a promise, the result is used
   * for the key for a second. Throws `WEIR_MISSING_OPTION` for a function without `fallbackLimit`.
   *
   * @see `@weir/core/docs/guides/plans.md`
   */
  readonly limit: number | ((request: Req) => Awaitable<number>)
  /**
   * Applies if the `limit` function fails, and to `check` without a `limit`: 1 to 2^53 - 1. Required with a `limit` function.
   *
   * A function also fails if it takes longer than `callbackTimeout` or returns no limit. Throws `WEIR_INVALID_OPTION` if `limit` is a
   * number.
   *
   * @default none: the limit is a number
   */
  readonly fallbackLimit?: number
  /**
   * Sets the time that `limit` is for: at least 10 ms, or a day, week or month of `calendar()`.
   *
   * A string such as `'60s'` or `'1h'`, or a number of milliseconds. `calendar()` needs `fixedWindow()`. Throws `WEIR_INVALID_OPTION` if a
   * span, or a sub-window of `slidingWindow()`, would be shorter than 5 ms.
   *
   * @see `@weir/core/docs/reference/options.md#calendar`
   */
  readonly interval: IntervalOption
  /**
   * Divides the interval into 2 to 1000 spans of at least 5 ms. Counts are synced at the end of each span, but in spans under 5 minutes not
   * those far below the limit. Ignored with `'local'` and `'central'`.
   *
   * A process that is killed loses the counts that it has not synced. Throws `WEIR_INVALID_OPTION` with `concurrency()`.
   *
   * @default 6, or more if a span would exceed 5 minutes
   * @see `@weir/core/docs/guides/accuracy.md`
   */
  readonly spans?: number
  /**
   * Blocks a key after its first rejected request, in all processes: for this long, and at least until units come back.
   *
   * A duration such as `'10m'`, or `escalating()`, which makes each further block longer. Throws `WEIR_INVALID_OPTION` with a `delay`, with
   * `concurrency()`, and with a `leakyBucket()` that delays requests in the background.
   *
   * @default 0
   * @see `@weir/core/docs/reference/options.md#cooldowns-that-grow`
   */
  readonly cooldown?: Duration | EscalatingCooldown
  /**
   * Chooses how requests are counted over time.
   *
   * - `fixedWindow()`: at most the limit in each interval of the clock.
   * - `slidingWindow()`: at most the limit in any stretch of the interval's length.
   * - `slidingCounter()`: as a sliding window, estimated from two fixed windows.
   * - `slidingLog()`: exactly the limit in any stretch. It stores the time of each request.
   * - `tokenBucket()`: a burst at once, then a steady pace.
   * - `leakyBucket()`: a steady pace. Requests of a burst wait for their turn.
   * - `concurrency()`: at most `limit` requests in flight, without an `interval`.
   *
   * Import it from the package that you import `throttle` or `createThrottler` from. Throws `WEIR_INVALID_OPTION` if the algorithm can't
   * run with the `coordination`.
   *
   * @default fixedWindow()
   * @example
   * algorithm: tokenBucket({ burst: 20 })
   * @see `@weir/core/docs/reference/options.md#algorithms`
   */
  readonly algorithm?: Algorithm
  /**
   * Chooses where requests are counted and who decides. Required if the algorithm doesn't support the default. All but `'local'` need a
   * `store`.
   *
   * - `'local'`: this process counts and decides alone.
   * - `'background'`: each process decides at once, and counts are synced as needed. It rejects a key once confirmed counts show that the
   *   cluster is over the limit.
   * - `'periodic'`: each process decides at once by estimates, and counts are synced only at the end of each span, as in A. Gurtovoi,
   *   "Decentralized Request Throttling".
   * - `'leased'`: each process takes part of a key's quota ahead. A request waits for the store if no quota is left here. The cluster never
   *   allows more than the limit while the store answers and keeps its data.
   * - `'central'`: the store decides each request, and each waits for a round trip.
   *
   * Throws `WEIR_INVALID_OPTION` if the algorithm doesn't support it, and `WEIR_MISSING_OPTION` for all but `'local'` without a `store`.
   * With `'leased'` and `'central'` call `checkAsync` instead of `check`.
   *
   * @default `'background'` with a `store`, `'local'` without one
   * @see `@weir/core/docs/reference/options.md#coordination`
   */
  readonly coordination?: Coordination
  /**
   * Decides requests while the store is down. Ignored with `'local'` and without a `store`.
   *
   * - `'share'`: allows this process's part of the limit, at least one unit. With coordination `'periodic'` it follows rule 4 of the
   *   published algorithm. A process that starts while the store is down allows the whole limit, unless you set `expectedProcesses`.
   * - `'open'`: allows all requests.
   * - `'closed'`: rejects all requests.
   *
   * With `'central'` it also decides requests that get no reply within `storeTimeout`. Blocked keys stay blocked.
   *
   * @default 'share'
   * @example
   * failMode: 'closed' // an outage rejects all requests, so that none is above the limit
   * @see `@weir/core/docs/reference/options.md#failmode`
   */
  readonly failMode?: FailMode
  /**
   * Limits how long a request waits for the store: 1 ms to 1 minute. Then `failMode` decides with `'central'`. With `'leased'` the request
   * is rejected, unless the store already counts as down.
   *
   * Throws `WEIR_INVALID_OPTION` with coordination `'local'`, `'background'` and `'periodic'`, because no request waits there.
   *
   * @default '50ms'
   * @see `@weir/core/docs/guides/central.md`
   */
  readonly storeTimeout?: Duration
  /**
   * Chooses which requests share a count. With `'route'` and `'all'`, **all clients share it**. In your own code, pass the key to `check`.
   *
   * - `'ip'`: each client address has its own count.
   * - `'route'`: each route has one count, which **all clients share**: one client can use up the limit of all others.
   * - `'all'`: all requests of **all clients share** one count.
   * - `header('x-api-key')`: each value of a request header has its own count.
   * - A function of the request: returns a string, a number or a bigint, or a promise. If it fails or returns nothing, the request is
   *   counted by its address, apart from other keys.
   * - A list of these: `['ip', 'route']` counts each client on each route.
   *
   * A string passed to `check` is the key itself.
   *
   * @default required in middleware
   * @example
   * key: (req) => req.user?.id
   * @see `@weir/core/docs/guides/keys.md`
   */
  readonly key?: KeyOption<Req>
  /**
   * Chooses which requests the policy applies to: `paths('POST /login', '/api/*rest')`, which matches every spelling of a path, or a
   * function that returns `true` or `false`.
   *
   * A function may return a promise. If it fails, the policy applies. Ignored by `check`.
   *
   * @default all requests
   * @example
   * match: paths('POST /login', '/api/*rest')
   * @see `@weir/core/docs/reference/paths.md`
   */
  readonly match?: MatchOption<Req>
  /**
   * Sets how many units a request uses: more than 0, at most the limit. If a function returns more than the limit, the request never fits.
   *
   * A function may return costs by policy name instead, such as `{ requests: 1, tokens: 900 }`, so that one function serves several
   * policies. A policy that it doesn't name is not counted for this request. If a function fails or names an unknown policy, the request
   * costs 1. Throws `WEIR_INVALID_OPTION` for a number that no request could ever pay.
   *
   * @default 1
   * @example
   * cost: (req) => (req.method === 'GET' ? 1 : 5)
   * @see `@weir/core/docs/guides/costs.md`
   */
  readonly cost?: number | ((request: Req) => Awaitable<number | Costs>)
  /**
   * Limits the units of one reservation: a whole number from 1 to the limit. A larger reservation is rejected and never fits.
   *
   * Ignored by `check` and `acquire`. Throws `WEIR_INVALID_OPTION` with `concurrency()`.
   *
   * @default the limit, or the size of a bucket
   * @see `@weir/core/docs/guides/budgets.md`
   */
  readonly maxReservation?: number
  /**
   * Delays requests instead of rejecting them: for at most this long (1 ms to 24 days), or for the time that a function returns for a
   * request `over` units above the limit. Not with `cooldown`, or a `leakyBucket()` that delays requests itself. A function needs `'local'`
   * or `'background'`.
   *
   * - A duration: a request waits for its turn if units come back within it. Otherwise it is rejected.
   * - A function `(over, request)`: requests above the limit are counted too, and each waits as long as the function returns. `Infinity`,
   *   or more than `maxWait` of the throttler's `queue`, rejects the request.
   *
   * Adapters delay requests by themselves. In your own code call `checkAsync`. Any other combination throws `WEIR_INVALID_OPTION`.
   *
   * @default none: requests above the limit are rejected
   * @example
   * delay: (over) => over * 100 // each request above the limit waits 100 ms longer than the one before
   * @see `@weir/core/docs/guides/delay.md`
   */
  readonly delay?: Duration | SlowDown<Req>
  /**
   * Decides, counts and reports, but never rejects.
   *
   * The decision has `dryRun: true` if it would have rejected the request.
   *
   * @default false
   */
  readonly dryRun?: boolean
  /**
   * Judges the policy as one of the next rules, and never rejects.
   *
   * It also counts requests that the active policies reject, but not requests that another candidate would reject.
   *
   * @default false
   * @see `@weir/core/docs/guides/rules.md`
   */
  readonly candidate?: boolean
}

/**
 * Returns how long a request above the limit waits.
 *
 * @param over units above the limit, including this request's, by the counts of this process: 1 for the first request of cost 1
 * @param request undefined if your own code calls `checkAsync`
 * @returns a duration, or 0 for no delay. If the function fails or returns no duration, the request is rejected
 */
export type SlowDown<Req> = (over: number, request: Req) => Awaitable<Duration>

/** A rule for requests in flight (`concurrency()`). It has no interval, and no option that depends on one. */
export interface SlotPolicyOptions<Req = unknown, Name extends string = string>
  extends Omit<PolicyOptions<Req, Name>, 'interval' | 'spans' | 'cooldown' | 'algorithm' | 'coordination' | 'delay' | 'maxReservation'> {
  /**
   * Counts requests in flight, so `limit` is how many requests of a key may run at the same time. Throws `WEIR_INVALID_OPTION` beside an
   * `interval`, `spans` or `cooldown`.
   *
   * @example
   * algorithm: concurrency({ maxDuration: '1m' })
   * @see `@weir/core/docs/guides/concurrency.md`
   */
  readonly algorithm: SlotAlgorithm
  /**
   * Chooses where slots are counted.
   * - `'local'`: the limit is for this process alone.
   * - `'leased'`: the limit is for all processes that share the `store`.
   *
   * Throws `WEIR_MISSING_OPTION` if there is a `store` and it is absent.
   *
   * @default `'local'` without a `store`. With one it is required
   */
  readonly coordination?: Extract<Coordination, 'local' | 'leased'>
  /**
   * Lets a request wait until another one has ended, instead of rejecting it. A duration from 1 ms to 24 days.
   *
   * @default none: the request is rejected at once
   * @example
   * delay: '5s'
   * @see `@weir/core/docs/guides/delay.md`
   */
  readonly delay?: Duration
  readonly interval?: never
  readonly spans?: never
  readonly cooldown?: never
  readonly maxReservation?: never
}

/** A policy by which an adapter counts requests. */
export type RequestPolicyOptions<Req = unknown, Name extends string = string> = PolicyOptions<Req, Name> & WithKey<Req>

/** A policy by which an adapter counts requests in flight. */
export type RequestSlotPolicyOptions<Req = unknown, Name extends string = string> = SlotPolicyOptions<Req, Name> & WithKey<Req>

type WithKey<Req> = Required<Pick<PolicyOptions<Req>, 'key'>>

/** A rule of either kind. */
export type AnyPolicyOptions<Req = unknown, Name extends string = string> = PolicyOptions<Req, Name> | SlotPolicyOptions<Req, Name>

/** A checked, complete and frozen policy. Times are milliseconds. */
export interface Policy<Name extends string = string> extends MeterPolicy {
  readonly name: Name
  readonly algorithm: AnyAlgorithm
  readonly coordination: Coordination
  readonly cooldownGrowth: Growth | undefined
  /** Whether it is a candidate rule, which is judged separately from the active rules. Then `dryRun` is true as well. */
  readonly candidate: boolean
  /** The longest time that a request waits for the store, in milliseconds. 0 if it never does. */
  readonly storeTimeout: number
  /**
   * The longest delay of a request that would be rejected, in milliseconds, or the function that returns the delay. 0 if no request is
   * delayed.
   */
  readonly delay: number | ((over: number, request: never) => unknown)
  /** The most units of one reservation. Undefined if the limit is the maximum. */
  readonly maxReservation: number | undefined
}

/** Whether the policy's meter continues with the algorithm's local meter, which gets this process's part of the limit. */
export function goesOnLocally({ algorithm, coordination }: Policy): boolean {
  return coordination === 'central' || (coordination !== 'local' && algorithm.slots !== undefined)
}
