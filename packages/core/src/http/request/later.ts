import type { Patience } from '../../report/user-function.ts'
import type { KeyFacts } from './request-facts.ts'
import type { PlanState, Rule } from './rule.ts'
import type { RuleAnswers } from './rule-answers.ts'

/** The keys and costs of one request, as in `Rules`, but not shared with other requests. */
export interface Reading {
  readonly keys: (string | undefined)[]
  readonly costs: number[]
  /** The limit of each key whose policy has a limit function. Undefined if no policy has one. */
  readonly limits: (number | undefined)[] | undefined
  /** The indexes of the policies that apply, ascending. */
  readonly applying: number[]
}

/** The functions of a rule, in the order in which they are called. */
export const PLAN = 0
export const MATCH = 1
export const KEY = 2
export const COST = 3
export const LIMIT = 4
export type Stage = typeof PLAN | typeof MATCH | typeof KEY | typeof COST | typeof LIMIT

/** A key with a source that has not answered yet. */
export interface PartOfKey {
  /** The index of that source. */
  readonly at: number
  /** The key up to that source. */
  readonly before: string
  /** The promise to wait for. */
  readonly answer: object
}

/** The surroundings of one request that waits. */
export interface LaterContext<Req> {
  readonly rules: readonly Rule<Req>[]
  readonly answers: RuleAnswers<Req>
  readonly request: Req
  readonly facts: KeyFacts
  /** The plans that are already known. */
  readonly plans: Map<PlanState, string>
  readonly patience: Patience
}
