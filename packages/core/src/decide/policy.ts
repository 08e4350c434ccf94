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

/** A rule as a user writes it. Times are milliseconds or strings such as `'500ms'`, `'10s'`, `'1m'`, `'1h'`. */
export interface PolicyOptions<Req = unknown, Name extends string = string> {
  /** Tells policies apart, in decisions, headers, metrics and the store. Default `'default'`. */
  readonly name?: Name
  /**
   * Cost units per `interval` for each key: a number from 1 to 2^53 - 1, or a function of the request that returns one, e.g. of the
   * customer's contract. It may return 0, which rejects all, and `Infinity`, which allows all. An answer that comes later is kept for
   * its key for a second, so that a burst asks once. With a function `fallbackLimit` is needed.
   */
  readonly limit: number | ((request: Req) => Awaitable<number>)
  /** What holds where a `limit` function gives no limit, and for `check` without a `limit`. A number from 1 to 2^53 - 1. */
  readonly fallbackLimit?: number
  /** Length of the interval, such as `'60s'` (a number is milliseconds), or those of a calendar: `calendar('month', { timeZone: 'Europe/Prague' })`, with `fixedWindow()`. */
  readonly interval: IntervalOption
  /** Parts of the interval; counts are exchanged at the end of each at the latest. Whole number, 2 to 1000; a span is at least 5 ms. Default 6, or as many as make a span no longer than 5 minutes. */
  readonly spans?: number
  /** How long a key stays blocked after its first rejected request; 0 (default): until the interval ends. `escalating()` makes each further block longer. */
  readonly cooldown?: Duration | EscalatingCooldown
  /** What the limit means over time, such as `slidingWindow()`. Default `fixedWindow()`. */
  readonly algorithm?: Algorithm
  /** Where counts are kept and who decides. Default `'background'` with a store, `'local'` without one. */
  readonly coordination?: Coordination
  /** What decides while the store is away. Default `'share'`. */
  readonly failMode?: FailMode
  /**
   * With coordination `'central'` and `'leased'`: how long a request waits for the store at most; then `failMode` decides. From 1 ms
   * to a minute. Default 50 ms.
   */
  readonly storeTimeout?: Duration
  /** What requests are counted by. Default `'route'` for requests; a string given to `check` is the key itself. */
  readonly key?: KeyOption<Req>
  /** Which requests the policy applies to. Default: all. */
  readonly match?: MatchOption<Req>
  /**
   * Units that one request takes: a finite number > 0 and at most the limit, or a function of the request. A request for which it
   * returns more than the limit is rejected, and never fits. Default 1.
   */
  readonly cost?: number | ((request: Req) => Awaitable<number>)
  /**
   * Holds a request instead of rejecting it. A duration, from 1 ms to 24 days: a request for which there is room again within it waits for
   * that, in its turn. Or a function, for slowing down: requests above the limit are counted too, and each waits for as long as the
   * function says; one for which it says `Infinity`, or more than `maxWait` of the throttler's `queue`, is rejected. Adapters hold
   * requests by themselves, in your own code `checkAsync` does. Default: none is held.
   */
  readonly delay?: Duration | SlowDown<Req>
  /**
   * Decides and reports, but never rejects.
   *
   * @default false
   */
  readonly dryRun?: boolean
  /**
   * Judges this policy as one of the rules that are to replace the others, and never rejects. Requests that the present policies reject
   * count for it too; requests that another candidate would reject don't.
   *
   * @default false
   * @see @weir/core/docs/guides/rules.md
   */
  readonly candidate?: boolean
}

/**
 * How long a request waits that is above the limit.
 *
 * @param over units above the limit, those of this request included, as far as this node knows: 1 for the first request of cost 1
 * @param request undefined where your own code calls `checkAsync`
 * @returns a duration, 0 for none. Without an answer, or with one that is no duration, the request is rejected
 */
export type SlowDown<Req> = (over: number, request: Req) => Awaitable<Duration>

/** A rule for requests in flight (`concurrency()`): there is no interval, and nothing that is made of one. */
export interface SlotPolicyOptions<Req = unknown, Name extends string = string>
  extends Omit<PolicyOptions<Req, Name>, 'interval' | 'spans' | 'cooldown' | 'algorithm' | 'coordination' | 'delay'> {
  /** Instead of an interval. `limit` are units of a key in flight. */
  readonly algorithm: SlotAlgorithm
  /** Where slots are counted. */
  readonly coordination?: Extract<Coordination, 'local' | 'leased'>
  /** How long a request waits at most until another one has ended, instead of being rejected; from 1 ms to 24 days. Default: not at all. */
  readonly delay?: Duration
  readonly interval?: never
  readonly spans?: never
  readonly cooldown?: never
}

/** A rule of either kind. */
export type AnyPolicyOptions<Req = unknown, Name extends string = string> = PolicyOptions<Req, Name> | SlotPolicyOptions<Req, Name>

/** A checked, complete and frozen policy. Times are milliseconds. */
export interface Policy<Name extends string = string> extends MeterPolicy {
  readonly name: Name
  readonly algorithm: AnyAlgorithm
  readonly coordination: Coordination
  readonly cooldownGrowth: Growth | undefined
  /** Whether it is judged together with others of its kind, whatever the rules decide that hold; then `dryRun` is true as well. */
  readonly candidate: boolean
  /** How long a request waits for the store at most, in milliseconds; 0 where it is not asked. */
  readonly storeTimeout: number
  /** How long a request is held at most instead of being rejected, in milliseconds, or what says for how long; 0 where none is held. */
  readonly delay: number | ((over: number, request: never) => unknown)
}

/** Whether a meter whose counts travel goes on with the algorithm's local one, which knows this node's part. */
export function goesOnLocally({ algorithm, coordination }: Policy): boolean {
  return coordination === 'central' || (coordination !== 'local' && algorithm.slots !== undefined)
}
