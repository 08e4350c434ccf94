import type { Algorithm, Coordination } from '../algorithms/algorithm.ts'
import type { Degraded, MeterPolicy } from '../algorithms/meter.ts'
import type { Growth } from '../keys/offences.ts'
import type { Duration } from '../options/duration.ts'
import type { Awaitable } from '../report/user-function.ts'
import type { GrowingCooldown } from './growing.ts'
import type { KeyOption, MatchOption } from './request-options.ts'

/** The key of policies that count all requests together. */
export const ALL_KEY = 'all'

/** A rule as a user writes it. Times are milliseconds or strings such as `'500ms'`, `'10s'`, `'1m'`, `'1h'`. */
export interface PolicyOptions<Req = unknown, Name extends string = string> {
  /** Tells policies apart, in decisions, headers, metrics and the store. Default `'default'`. */
  readonly name?: Name
  /** Cost units per `interval` for each key; a number from 1 to 2^53 - 1. */
  readonly limit: number
  /** Length of the interval. */
  readonly interval: Duration
  /** Parts of the interval; counts are exchanged at the end of each at the latest. Whole number, 2 to 1000; a span is at least 5 ms. Default 6, or as many as make a span no longer than 5 minutes. */
  readonly spans?: number
  /** How long a key stays blocked after its first refused request; 0 (default): until the interval ends. `growing()` makes each further block longer. */
  readonly cooldown?: Duration | GrowingCooldown
  /** What the limit means over time, such as `slidingWindow()`. Default `fixedWindow()`. */
  readonly algorithm?: Algorithm
  /** Where counts are kept and who decides. Default `'background'` with a store, `'local'` without one. */
  readonly coordination?: Coordination
  /** What decides while the store is away. Default `'share'`. */
  readonly degraded?: Degraded
  /**
   * With coordination `'central'` and `'leases'`: how long a request waits for the store at most; then `degraded` decides. From 1 ms
   * to a minute. Default 50 ms.
   */
  readonly deadline?: Duration
  /** What requests are counted by. Default `'route'` for requests; a string given to `check` is the key itself. */
  readonly key?: KeyOption<Req>
  /** Which requests the policy applies to. Default: all. */
  readonly match?: MatchOption<Req>
  /**
   * Units that one request takes: a finite number > 0 and at most the limit, or a function of the request. A request for which it
   * returns more than the limit is refused, and never fits. Default 1.
   */
  readonly cost?: number | ((request: Req) => Awaitable<number>)
  /** Decide and report, but never refuse. Default false. */
  readonly dryRun?: boolean
}

/** A checked, complete and frozen policy. Times are milliseconds. */
export interface Policy<Name extends string = string> extends MeterPolicy {
  readonly name: Name
  readonly algorithm: Algorithm
  readonly coordination: Coordination
  readonly cooldownGrowth: Growth | undefined
  /** How long a request waits for the store at most, in milliseconds; 0 where it is not asked. */
  readonly deadline: number
}
