import type { PlanGroup } from '../../decide/plans.ts'
import type { KeySource } from '../../decide/request-options.ts'
import type { LaterLimits } from './later-limits.ts'

/** The plan of the request at hand, asked once for all policies of a group. */
export interface PlanState {
  readonly group: PlanGroup
  /** The request that `current` is of, by its number. */
  request: number
  current: string
  reported: boolean
}

/** A rule, compiled. */
export interface Rule<Req> {
  readonly name: string
  /** For a policy that stands for one plan: the others' common state, and which plan. */
  readonly plans: PlanState | undefined
  readonly plan: string
  readonly sources: readonly KeySource<Req>[]
  readonly when: ((request: Req) => unknown) | undefined
  readonly cost: number | ((request: Req) => unknown)
  readonly limit: ((request: Req) => unknown) | undefined
  /** Limits that came later than they were asked for, by key. */
  readonly laterLimits: LaterLimits | undefined
  /** A header with an address that is counted by as a text, until this is reported. */
  addressHeader: string | undefined
  keyReported: boolean
  rawReported: boolean
  /** How many of the next keys with a colon are looked at: they may be IPv6 addresses. */
  colonsWatched: number
  matchReported: boolean
  costReported: boolean
  limitReported: boolean
}
