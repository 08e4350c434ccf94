import type { DecisionReason } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Policy } from './policy.ts'

/** The common part of a policy's decisions with the same outcome in one interval. Each of them refers to it. */
export interface Outcome {
  readonly policy: Policy | undefined
  /** The ordinal of the interval or bucket. */
  readonly ordinal: Ordinal
  /** Grows with time. Decisions from before a key's reset have a smaller one. */
  readonly serial: number
  readonly reason: DecisionReason
  /** Whether the request is allowed. */
  readonly allowed: boolean
  /** Whether the request costs more than the limit, so that it never fits. */
  readonly never: boolean
  /** Units per interval: the policy's limit, or the key's own. */
  readonly limit: number
}

/** The running interval or bucket of a policy, and the possible outcomes of decisions in it. */
export class RunningCell {
  readonly policy: Policy
  readonly ordinal: Ordinal
  readonly serial: number
  readonly passed: Outcome
  /** The limit is reached. */
  readonly full: Outcome
  /** The last rare outcome. */
  #rare: Outcome

  constructor(policy: Policy, ordinal: Ordinal) {
    this.policy = policy
    this.ordinal = ordinal
    this.serial = ++made
    this.passed = this.#outcomeOf('ok', false)
    this.full = this.#outcomeOf('limit', false)
    this.#rare = this.full
  }

  /** @param never whether the request costs more than the limit */
  outcome(reason: DecisionReason, never = false): Outcome {
    if (reason === 'ok') return this.passed
    if (reason === 'limit' && !never) return this.full
    if (this.#rare.reason !== reason || this.#rare.never !== never) this.#rare = this.#outcomeOf(reason, never)
    return this.#rare
  }

  #outcomeOf(reason: DecisionReason, never: boolean): Outcome {
    const { policy, ordinal, serial } = this
    return { policy, ordinal, serial, reason, allowed: reason === 'ok' || policy.dryRun, never, limit: policy.limit }
  }
}

/** Number of cells made so far. */
let made = 0
