import type { DecisionReason } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Policy } from './policy.ts'

/** What the decisions of one policy that come out alike in one interval have in common, so that each of them refers to it. */
export interface Outcome {
  readonly policy: Policy | undefined
  /** The interval or bucket. */
  readonly ordinal: Ordinal
  readonly reason: DecisionReason
  /** Whether the request may go on. */
  readonly allowed: boolean
}

/** What requests of a policy are counted in now: its running interval or bucket, and how decisions in it can come out. */
export class RunningCell {
  readonly policy: Policy
  readonly ordinal: Ordinal
  readonly passed: Outcome
  /** The limit is reached. */
  readonly full: Outcome
  /** Of the rarer outcomes the last one. */
  #rare: Outcome

  constructor(policy: Policy, ordinal: Ordinal) {
    this.policy = policy
    this.ordinal = ordinal
    this.passed = outcomeOf(policy, ordinal, 'ok')
    this.full = outcomeOf(policy, ordinal, 'limit')
    this.#rare = this.full
  }

  outcome(reason: DecisionReason): Outcome {
    if (reason === 'ok') return this.passed
    if (reason === 'limit') return this.full
    if (this.#rare.reason !== reason) this.#rare = outcomeOf(this.policy, this.ordinal, reason)
    return this.#rare
  }
}

function outcomeOf(policy: Policy, ordinal: Ordinal, reason: DecisionReason): Outcome {
  return { policy, ordinal, reason, allowed: reason === 'ok' || policy.dryRun }
}
