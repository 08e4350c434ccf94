import type { PlanGroup } from '../../decide/plans.ts'
import type { KeySource } from '../../decide/request-options.ts'
import type { LaterLimits } from './later-limits.ts'

/** The plan of the current request, which is computed once for all policies of a group. */
export interface PlanState {
  readonly group: PlanGroup
  /** The number of the request that `current` belongs to. */
  request: number
  current: string
  reported: boolean
}

/** A compiled rule. */
export interface Rule<Req> {
  readonly name: string
  /** For a policy of one plan: the state that it shares with the group's other policies, and its plan. */
  readonly plans: PlanState | undefined
  readonly plan: string
  readonly sources: readonly KeySource<Req>[]
  readonly when: ((request: Req) => unknown) | undefined
  readonly cost: number | ((request: Req) => unknown)
  readonly limit: ((request: Req) => unknown) | undefined
  /** Limits that a limit function returned later, by key. */
  readonly laterLimits: LaterLimits | undefined
  /** A header with an address that is counted as text. Undefined once this is reported. */
  addressHeader: string | undefined
  keyReported: boolean
  rawReported: boolean
  /** The number of further keys with a colon to check, because they may be IPv6 addresses. */
  colonsWatched: number
  matchReported: boolean
  costReported: boolean
  limitReported: boolean
}
