import type { Patience } from '../../report/user-function.ts'
import type { KeyFacts } from './request-facts.ts'
import type { PlanState, Rule } from './rule.ts'
import type { RuleAnswers } from './rule-answers.ts'

/** The keys and costs of one request, as in `Rules`, but its own. */
export interface Reading {
  readonly keys: (string | undefined)[]
  readonly costs: number[]
  /** The limit of each key, where policies ask for one; undefined where none does. */
  readonly limits: (number | undefined)[] | undefined
  /** The places of the policies that apply, ascending. */
  readonly applying: number[]
}

/** The functions of a rule, in the order in which they are asked. */
export const PLAN = 0
export const MATCH = 1
export const KEY = 2
export const COST = 3
export const LIMIT = 4
export type Stage = typeof PLAN | typeof MATCH | typeof KEY | typeof COST | typeof LIMIT

/** A key of which one source has not answered yet. */
export interface PartOfKey {
  /** Which source. */
  readonly at: number
  /** The key up to it. */
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
  /** The plans that are known already. */
  readonly plans: Map<PlanState, string>
  readonly patience: Patience
}
