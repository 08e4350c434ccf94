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
  /** Whether the request costs more than the limit, so that it never fits. */
  readonly never: boolean
  /** Units per interval: the policy's, or what the key was given by itself. */
  readonly limit: number
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
    this.passed = outcomeOf(policy, ordinal, 'ok', false)
    this.full = outcomeOf(policy, ordinal, 'limit', false)
    this.#rare = this.full
  }

  /** @param never whether the request costs more than the limit */
  outcome(reason: DecisionReason, never = false): Outcome {
    if (reason === 'ok') return this.passed
    if (reason === 'limit' && !never) return this.full
    if (this.#rare.reason !== reason || this.#rare.never !== never) this.#rare = outcomeOf(this.policy, this.ordinal, reason, never)
    return this.#rare
  }
}

function outcomeOf(policy: Policy, ordinal: Ordinal, reason: DecisionReason, never: boolean): Outcome {
  return { policy, ordinal, reason, allowed: reason === 'ok' || policy.dryRun, never, limit: policy.limit }
}
