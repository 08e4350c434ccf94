import type { Algorithm, AnyAlgorithm, Coordination, SlotAlgorithm } from '../algorithms/algorithm.ts'
import type { FailMode, MeterPolicy } from '../algorithms/meter.ts'

export type { Slots } from '../algorithms/algorithm.ts'

import type { Growth } from '../keys/offences.ts'
import type { Duration } from '../options/duration.ts'
import type { IntervalOption } from '../options/interval.ts'
import type { Awaitable } from '../report/user-function.ts'
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
   * Names the policy in decisions, headers, metrics and the store. 1 to 64 printable ASCII characters. Throws `WEIR_DUPLICATE_POLICY` if
   * two policies of a throttler, or two different rules at one store, have the same name.
   *
   * @default 'default'
   */
  readonly name?: Name
  /**
   * Sets how many requests each key may send per `interval`, or how many units if requests have a `cost`. A number from 1 to 2^53 - 1, or
   * a function of the request that returns one, such as the limit in the customer's contract. The function may also return 0, which
   * rejects all requests, or `Infinity`, which allows all. If it returns a promise, the result is used for the key for a second. Throws
   * `WEIR_MISSING_OPTION` for a function without `fallbackLimit`.
   *
   * @see `@weir/core/docs/guides/plans.md`
   */
  readonly limit: number | ((request: Req) => Awaitable<number>)
  /**
   * Applies if the `limit` function fails, takes longer than `callbackTimeout` or returns no limit, and to `check` without a `limit`. A
   * number from 1 to 2^53 - 1. Required if `limit` is a function. Throws `WEIR_INVALID_OPTION` if it is a number.
   *
   * @default none: the limit is a number
   */
  readonly fallbackLimit?: number
  /**
   * Sets the time that `limit` is for: a string such as `'60s'` or `'1h'`, or a number of milliseconds, at least 10 ms. With
   * `fixedWindow()` it may be a day, week or month of a calendar: `calendar('month', { timeZone: 'Europe/Prague' })`. Throws
   * `WEIR_INVALID_OPTION` if a span, or a sub-window of `slidingWindow()`, would be shorter than 5 ms.
   *
   * @see `@weir/core/docs/guides/calendar.md`
   */
  readonly interval: IntervalOption
  /**
   * Divides the interval into spans. Counts are synced at the end of each span at the latest, so a process that is killed loses the counts
   * of one span at most. Keys far below their limit are not synced at the end of spans shorter than 5 minutes. A whole number from 2 to
   * 1000, and a span lasts at least 5 ms. Ignored with coordination `'local'` and `'central'`. Throws `WEIR_INVALID_OPTION` with
   * `concurrency()`.
   *
   * @default 6, or as many as make a span no longer than 5 minutes
   * @see `@weir/core/docs/guides/accuracy.md`
   */
  readonly spans?: number
  /**
   * Blocks a key for this long after its first rejected request, in all processes. A duration such as `'10m'`, or 0, which blocks the key
   * only until units come back. `escalating()` makes each further block longer. Throws `WEIR_INVALID_OPTION` with a `delay`, with
   * `concurrency()`, and with a `leakyBucket()` that delays requests in the background.
   *
   * @default 0
   */
  readonly cooldown?: Duration | EscalatingCooldown
  /**
   * Chooses how requests are counted over time. Import it from the package that you import `throttle` or `createThrottler` from.
   * - `fixedWindow()`: at most the limit in each interval of the clock.
   * - `slidingWindow()`: at most the limit in any stretch of the interval's length.
   * - `slidingCounter()`: as a sliding window, estimated from two fixed windows.
   * - `slidingLog()`: exactly the limit in any stretch. It stores the time of each request.
   * - `tokenBucket()`: a burst at once, then a steady pace.
   * - `leakyBucket()`: a steady pace. Requests of a burst wait for their turn.
   * - `concurrency()`: at most `limit` requests in flight, without an `interval`.
   *
   * Throws `WEIR_INVALID_OPTION` if the algorithm can't run with the `coordination`.
   *
   * @default fixedWindow()
   * @example
   * algorithm: tokenBucket({ burst: 20 })
   * @see `@weir/core/docs/guides/algorithms.md`
   */
  readonly algorithm?: Algorithm
  /**
   * Chooses where requests are counted and who decides.
   * - `'local'`: this process counts and decides alone.
   * - `'background'`: each process decides at once, and counts are synced as needed. It rejects a key once confirmed counts show that the
   *   cluster is over the limit.
   * - `'periodic'`: each process decides at once by estimates, and counts are synced only at the end of each span, as in A. Gurtovoi,
   *   "Decentralized Request Throttling".
   * - `'leased'`: each process takes part of a key's quota ahead. A request waits for the store if no quota is left here. The cluster
   *   never allows more than the limit while the store answers and keeps its data.
   * - `'central'`: the store decides each request, and each waits for a round trip.
   *
   * Throws `WEIR_INVALID_OPTION` if the algorithm doesn't support it, and `WEIR_MISSING_OPTION` for all but `'local'` without a `store`.
   * With `'leased'` and `'central'` call `checkAsync` instead of `check`.
   *
   * @default `'background'` with a `store`, `'local'` without one
   * @see `@weir/core/docs/guides/exactness.md`
   */
  readonly coordination?: Coordination
  /**
   * Decides requests while the store is down, and with `'central'` also requests that get no reply within `storeTimeout`. Blocked keys stay
   * blocked.
   * - `'share'`: allows this process's part of the limit, at least one unit. With coordination `'periodic'` it follows rule 4 of the
   *   published algorithm. A process that starts while the store is down allows the whole limit, unless you set `expectedProcesses`.
   * - `'open'`: allows all requests.
   * - `'closed'`: rejects all requests.
   *
   * Ignored with coordination `'local'` and without a `store`.
   *
   * @default 'share'
   * @example
   * failMode: 'closed' // an outage rejects all requests, so that none is above the limit
   * @see `@weir/core/docs/guides/exactness.md`
   */
  readonly failMode?: FailMode
  /**
   * Limits how long a request waits for the store. Then `failMode` decides with `'central'`. With `'leased'` the request is rejected,
   * unless the store counts as down. A duration from 1 ms to 1 minute. Throws `WEIR_INVALID_OPTION` with coordination `'local'`,
   * `'background'` and `'periodic'`, because no request waits there.
   *
   * @default '50ms'
   * @see `@weir/core/docs/guides/central.md`
   */
  readonly storeTimeout?: Duration
  /**
   * Chooses who shares a limit: requests with the same key use the same count. Middleware requires it.
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
   * @default none: middleware requires a key, and your own code passes it to `check`
   * @example
   * key: (req) => req.user?.id
   * @see `@weir/core/docs/guides/keys.md`
   */
  readonly key?: KeyOption<Req>
  /**
   * Chooses which requests the policy applies to. `paths('POST /login', '/api/*rest')` matches methods and paths, in every spelling that
   * leads to the route. A function returns `true` or `false`, or a promise. If it fails, the policy applies. Ignored by `check`.
   *
   * @default all requests
   * @example
   * match: paths('POST /login', '/api/*rest')
   * @see `@weir/core/docs/guides/keys.md`
   */
  readonly match?: MatchOption<Req>
  /**
   * Sets how many units of the limit a request uses. A finite number > 0 and at most the limit, or a function of the request. If the
   * function returns more than the limit, the request is rejected and never fits. If it fails, the request costs 1. Throws
   * `WEIR_INVALID_OPTION` for a number that no request could ever pay.
   *
   * @default 1
   * @example
   * cost: (req) => (req.method === 'GET' ? 1 : 5)
   * @see `@weir/core/docs/guides/costs.md`
   */
  readonly cost?: number | ((request: Req) => Awaitable<number>)
  /**
   * Delays requests instead of rejecting them.
   * - A duration from 1 ms to 24 days: a request waits for its turn if units come back within it. Otherwise it is rejected.
   * - A function `(over, request)`: requests above the limit are counted too, and each waits as long as the function returns. `Infinity`,
   *   or more than `maxWait` of the throttler's `queue`, rejects the request. With coordination `'local'` and `'background'` only.
   *
   * Adapters delay requests by themselves. In your own code call `checkAsync`. Throws `WEIR_INVALID_OPTION` with a `cooldown`, and with a
   * `leakyBucket()` that delays requests itself.
   *
   * @default none: requests above the limit are rejected
   * @example
   * delay: (over) => over * 100 // each request above the limit waits 100 ms longer than the one before
   * @see `@weir/core/docs/guides/delay.md`
   */
  readonly delay?: Duration | SlowDown<Req>
  /**
   * Decides, counts and reports, but never rejects. The decision has `dryRun: true` if it would have rejected the request.
   *
   * @default false
   */
  readonly dryRun?: boolean
  /**
   * Judges this policy as one of the rules that will replace the others, and never rejects. It also counts requests that the active
   * policies reject, but not requests that another candidate would reject.
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
  extends Omit<PolicyOptions<Req, Name>, 'interval' | 'spans' | 'cooldown' | 'algorithm' | 'coordination' | 'delay'> {
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
}

/** Whether the policy's meter continues with the algorithm's local meter, which gets this process's part of the limit. */
export function goesOnLocally({ algorithm, coordination }: Policy): boolean {
  return coordination === 'central' || (coordination !== 'local' && algorithm.slots !== undefined)
}
