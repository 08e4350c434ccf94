import type { KeyOption, MatchOption } from '../http/request/reader.ts'
import type { Awaitable } from '../report/user-function.ts'
import type { CooldownGrowth } from '../store/contract.ts'
import type { Duration } from '../time/duration.ts'

/** How a policy decides. `'proof'` blocks only on what is known; `'published'` is the basic algorithm as published. */
export type Enforcement = 'proof' | 'published'
/** What the limit holds in: intervals aligned to the Unix epoch, or any stretch of `interval` length. */
export type WindowShape = 'fixed' | 'sliding'
/**
 * What a policy does while the store is away: admit this node's usual `'share'` of what is left; at most `limit / spans /
 * nodes` units a span, as `'published'`; everything (`'open'`); or nothing (`'closed'`).
 */
export type Degraded = 'share' | 'published' | 'open' | 'closed'

/** A cooldown that grows with each new block of a key, at all nodes alike. */
export interface GrowingCooldown {
  /** The first block. */
  readonly base: Duration
  /** What each further one is longer by: more than 1, at most 100. Default 2. */
  readonly factor?: number
  /** No block is longer; at least `base`. */
  readonly max: Duration
  /** How long after its end a block is remembered. Default: as long as `max`. */
  readonly memory?: Duration
}

/** A rule as a user writes it. Times are milliseconds or strings such as `'500ms'`, `'10s'`, `'1m'`, `'1h'`. */
export interface PolicyOptions<Req = unknown, Name extends string = string> {
  /** Tells policies apart, in decisions, headers, metrics and the store. Default `'default'`. */
  readonly name?: Name
  /** Cost units per `interval` for each key; a number from 1 to 2^53 - 1. */
  readonly limit: number
  /** Length of the interval. */
  readonly interval: Duration
  /** Parts of the interval; counts are exchanged at the end of each at the latest. Whole number, 2 to 1000; a span is at least 5 ms. Default 6. */
  readonly spans?: number
  /** How long a key stays blocked after its first refused request; 0 (default): until the interval ends. */
  readonly cooldown?: Duration | GrowingCooldown
  /** Default `'fixed'`. */
  readonly window?: WindowShape
  /** `window: 'sliding'`: parts that counts are kept in. Whole number, 6 to 120; one is at least 5 ms. Default 30. */
  readonly buckets?: number
  /**
   * `window: 'sliding'`: a key that reached its limit is open again when this part of the limit is free; more than 0,
   * at most 1. Smaller admits more under constant overload and costs more exchanges. Default 0.1.
   */
  readonly reopen?: number
  /** Default `'proof'`. */
  readonly enforcement?: Enforcement
  /** Default `'share'`. */
  readonly degraded?: Degraded
  /**
   * Near the limit, let a request wait for the store's word instead of deciding from what is known: `checkAsync`, and
   * the faces by themselves, then never admit more than the limit while the store answers. `check` stays as it is.
   * Fixed windows with `enforcement: 'proof'` only. Default false.
   */
  readonly strict?: boolean
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
export interface Policy<Name extends string = string> {
  readonly name: Name
  /** Cost units per interval for each key. */
  readonly limit: number
  readonly interval: number
  /** Parts of the interval. */
  readonly spans: number
  /** The first block, where cooldowns grow; 0 for none. */
  readonly cooldown: number
  /** How blocks of repeated offenders grow; undefined where all are alike. */
  readonly cooldownGrowth: CooldownGrowth | undefined
  readonly window: WindowShape
  /** 1 for a fixed window. */
  readonly buckets: number
  /** The part of the limit that must be free before a full key of a sliding window opens again. */
  readonly reopen: number
  readonly enforcement: Enforcement
  readonly degraded: Degraded
  /** Near the limit requests wait for the store's word. */
  readonly strict: boolean
  /** Refusals are only reported. */
  readonly dryRun: boolean
  /** Tells policies apart in the store: layout version, window, enforcement, interval and name. */
  readonly id: string
}
