import type { Coordination } from '../algorithms/algorithm.ts'
import type { FailMode } from '../algorithms/meter.ts'
import type { EscalatingOptions } from '../decide/escalating.ts'
import type { HeaderKey } from '../decide/request-options.ts'
import type { CalendarOptions, CalendarUnit } from '../options/calendar.ts'
import type { Duration } from '../options/duration.ts'

/** Rules as data: what a file, a key of Redis or an address holds, as JSON or YAML. `@weir/core/rules.schema.json` describes it to editors. */
export interface RulesDocument {
  /** For editors. */
  readonly $schema?: string
  /** A whole number from 1 on. Each change has another one; going back to an older one is a change too. */
  readonly version: number
  /** For people: the change that made this version. */
  readonly change?: RulesChange
  /** At least one. They take the place of all that the throttler had. */
  readonly policies: readonly RulesPolicy[]
  /** Limits of single keys; at most 50,000. */
  readonly overrides?: readonly RulesOverride[]
  /** Rules to come: judged beside the others on the same requests, and rejecting none. */
  readonly next?: NextRules
}

/** Notes on a change. */
export interface RulesChange {
  /** When: a time as in `'2026-11-23T22:00:00Z'`. */
  readonly at?: string
  /** The author: at most 200 characters. */
  readonly by?: string
  /** At most 1,000 characters. */
  readonly why?: string
}

/** Rules that are only judged. */
export interface NextRules {
  readonly policies: readonly RulesPolicy[]
  readonly overrides?: readonly RulesOverride[]
}

/** A key whose limit is another than its policy's. It goes before a `limit` function, too. */
export interface RulesOverride {
  /** The policy's name; of a policy with `limits` that of the whole, or of one plan, as in `'customer:pro'`. */
  readonly policy: string
  /** As it is counted; `'all'` for a policy with `key: 'all'`. At most 1,000 characters. */
  readonly key: string
  /** 0 rejects all; otherwise from 1 to 2^53 - 1. */
  readonly limit: number
  /** From then on the policy's own limit holds again: a time as in `'2026-12-24T00:00:00+01:00'`. Default: it stays. */
  readonly until?: string
}

/** An algorithm by the name under which `algorithms` holds it, with its options if it is to have some. */
export type RulesAlgorithm = string | ({ readonly name: string } & Readonly<Record<string, unknown>>)

/** The intervals of a calendar, as `calendar()` makes them. */
export type RulesCalendar = { readonly calendar: CalendarUnit } & CalendarOptions

/** The key by which requests are counted. A string is `'route'`, `'ip'`, `'all'`, or the name of a function in `keys`. */
export type RulesKey = string | HeaderKey | readonly (string | HeaderKey)[]

/** A policy as data: its options are those of a policy in code. Functions stand in code, and are named here. */
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
  /** Path patterns as those of `paths()`, or the name of a function in `matches`. */
  readonly match?: string | readonly string[]
  /** Units, or the name of a function in `costs`. */
  readonly cost?: number | string
  /** A duration, or the name of a function in `delays`. */
  readonly delay?: Duration
  readonly dryRun?: boolean
  /** The limit of each plan, with `plan`, in place of `limit`. */
  readonly plans?: Readonly<Record<string, number | { readonly limit: number; readonly interval?: Duration | RulesCalendar }>>
  /** The name of a function in `plans`. */
  readonly plan?: string
}
