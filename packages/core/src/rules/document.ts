import type { Coordination } from '../algorithms/algorithm.ts'
import type { FailMode } from '../algorithms/meter.ts'
import type { EscalatingOptions } from '../decide/escalating.ts'
import type { HeaderKey } from '../decide/request-options.ts'
import type { CalendarOptions, CalendarUnit } from '../options/calendar.ts'
import type { Duration } from '../options/duration.ts'

/**
 * Rules as data: the content of a file, a key of Redis or an address, as JSON or YAML. `@weir/core/rules.schema.json` describes it for
 * editors.
 */
export interface RulesDocument {
  /** Names the schema, for editors. */
  readonly $schema?: string
  /** Numbers the document, with a whole number of at least 1. Each change has another number, even if it restores older rules. */
  readonly version: number
  /** Describes the change that made this version, for people. */
  readonly change?: RulesChange
  /** Lists the policies, from 1 to 100. They replace all policies of the throttler. */
  readonly policies: readonly RulesPolicy[]
  /** Sets limits of single keys, at most 50,000. */
  readonly overrides?: readonly RulesOverride[]
  /** Candidate rules. They are judged on the same requests, but reject none. */
  readonly next?: NextRules
}

/** Notes on a change. */
export interface RulesChange {
  /** Time of the change, e.g. `'2026-11-23T22:00:00Z'`. At most 40 characters. */
  readonly at?: string
  /** Author of the change: at most 200 characters. */
  readonly by?: string
  /** Reason for the change: at most 1,000 characters. */
  readonly why?: string
}

/** Candidate rules, which are only judged. */
export interface NextRules {
  readonly policies: readonly RulesPolicy[]
  readonly overrides?: readonly RulesOverride[]
}

/**
 * Gives a key another limit than its policy's. It takes precedence over the result of a `limit` function, and over a `limit` that
 * a call passes.
 */
export interface RulesOverride {
  /** Name of the policy. For a policy with `plans`, its name, or the name of one plan as in `'customer:pro'`. */
  readonly policy: string
  /** The key as it is counted, or `'all'` for a policy with `key: 'all'`. At most 1,000 characters. */
  readonly key: string
  /** The key's limit in units: 0 rejects all requests; otherwise from 1 to 2^53 - 1. */
  readonly limit: number
  /** Time at which the policy's own limit applies again, e.g. `'2026-12-24T00:00:00+01:00'`. Default: the override has no end. */
  readonly until?: string
}

/** An algorithm by its name in `algorithms`, with its options if it needs any. */
export type RulesAlgorithm = string | ({ readonly name: string } & Readonly<Record<string, unknown>>)

/** The intervals of a calendar, as `calendar()` makes them. */
export type RulesCalendar = { readonly calendar: CalendarUnit } & CalendarOptions

/** The key by which requests are counted. A string is `'route'`, `'ip'`, `'all'`, or the name of a function in `keys`. */
export type RulesKey = string | HeaderKey | readonly (string | HeaderKey)[]

/** A policy as data. It has the options of a policy in code, except that functions are defined in code and named here. */
export interface RulesPolicy {
  readonly name?: string
  /** Units, or the name of a function in `limits`. */
  readonly limit?: number | string
  readonly fallbackLimit?: number
  readonly interval?: Duration | RulesCalendar
  readonly spans?: number
  /** A duration, or the options of `escalating()`. */
  readonly cooldown?: Duration | EscalatingOptions
  /** Default `'fixedWindow'`, which need not be in `algorithms`. */
  readonly algorithm?: RulesAlgorithm
  readonly coordination?: Coordination
  readonly failMode?: FailMode
  readonly storeTimeout?: Duration
  readonly key: RulesKey
  /** Path patterns as for `paths()`, or the name of a function in `matches`. */
  readonly match?: string | readonly string[]
  /** Units, or the name of a function in `costs`. */
  readonly cost?: number | string
  /** The most units of one reservation. Default: the limit. */
  readonly maxReservation?: number
  /** A duration, or the name of a function in `delays`. */
  readonly delay?: Duration
  readonly dryRun?: boolean
  /** The limit of each plan, with `plan` and instead of `limit`. */
  readonly plans?: Readonly<Record<string, number | { readonly limit: number; readonly interval?: Duration | RulesCalendar }>>
  /** The name of a function in `plans`. */
  readonly plan?: string
}
