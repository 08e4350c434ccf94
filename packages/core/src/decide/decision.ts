import type { DecisionReason } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Outcome } from './outcome.ts'
import type { Policy } from './policy.ts'

/**
 * The decision of one policy about a request, or of several: then it is the decision of the policy that rejected (for longest), or else of
 * the one with the smallest part of its limit left, and `parts` contains all of them.
 *
 * Fields are computed when they are read, so read the ones you need: `const { allowed, retryAfterMs } = decision`. A spread copies none of
 * them, which TypeScript reports; `{ ...decision.toJSON() }` copies all but `parts`.
 */
export declare abstract class Decision<Name extends string = string> {
  /** Whether the request may go on. */
  get allowed(): boolean
  get reason(): DecisionReason
  /** The policy that this decision is of; undefined when none applies to the request. */
  get policy(): Policy<Name> | undefined
  /** The key by which that policy counted the request. A key of more than 256 characters is its beginning and a hash. */
  get key(): string
  /** Units per interval, or in flight; `Infinity` when no policy applies. */
  get limit(): number
  /** Units left to the key as far as this node knows, after this request; 0 for a blocked key. Of a bucket up to its burst. */
  get remaining(): number
  /**
   * Milliseconds until all units are back if no other request comes: `limit` (of a bucket its burst) fits then. A block ends before it. 0
   * if that is not known: when requests in flight end (`concurrency()`).
   */
  get resetAfterMs(): number
  /**
   * Milliseconds after which a rejected request would be let in if no other came before it; 0 when allowed, and where that is not
   * known (`concurrency()`). `Infinity` for a request that costs more than the limit: it never fits.
   */
  get retryAfterMs(): number
  /**
   * Milliseconds that an allowed request is to wait before it goes on, where the algorithm keeps a pace (`leakyBucket()`); the
   * longest of several policies. 0 for all others.
   */
  get delayMs(): number
  /** Units that the request took; 0 when it was rejected. */
  get cost(): number
  /** True when `dryRun` let a request pass that would have been rejected. */
  get dryRun(): boolean
  /** One decision for each policy that applies, in the order of the policies. */
  get parts(): readonly Decision<Name>[]
  /** A plain object of all fields but `parts`, to spread, keep or send. */
  toJSON(): DecisionFields<Name>
}

/** The fields of a decision that a log shows. */
export type DecisionFields<Name extends string = string> = Omit<Decision, 'policy' | 'parts' | 'toJSON'> & {
  readonly policy: Policy<Name> | undefined
}

/** A policy, the limit of the key that it counted by (without one the policy's own), and the interval. */
export interface Limited {
  readonly policy: Policy | undefined
  readonly limit?: number
  readonly ordinal?: Ordinal
}

/** The numbers of a decision of several policies, which are read without making its parts. */
export interface Listed {
  /** Itself; undefined for a decision that has its parts anyway. */
  readonly listed: Listed
  /** The policy of each part: the same list as long as possible. */
  readonly policies: readonly Limited[]
  /** Units left to a part. */
  remainingAt(part: number): number
  /** Milliseconds until all units of a part are back. */
  resetAfterAt(part: number): number
}

/**
 * The decision of one policy. One constant shape, made on each request and retained by nobody here. Its fields are few, as to
 * make it is a good part of what a decision costs: what follows from others is computed when it is asked for. They are declared
 * only, since a class field that is also defined is written twice.
 */
export class PolicyDecision implements Decision {
  declare readonly outcome: Outcome
  declare readonly key: string
  declare readonly remaining: number
  declare readonly resetAfterMs: number
  /** Reason `'ok'`: units of the cost that have not been refunded. Any other reason: milliseconds until the request fits. */
  declare amount: number

  constructor(outcome: Outcome, key: string, remaining: number, resetAfterMs: number, amount: number) {
    this.outcome = outcome
    this.key = key
    this.remaining = remaining
    this.resetAfterMs = resetAfterMs
    this.amount = amount
  }

  get allowed(): boolean {
    return this.outcome.allowed
  }

  get reason(): DecisionReason {
    return this.outcome.reason
  }

  get policy(): Policy | undefined {
    return this.outcome.policy
  }

  /** The interval or bucket that the cost was taken from. */
  get ordinal(): Ordinal {
    return this.outcome.ordinal
  }

  /** Tells it from decisions of before or after a reset of its key. */
  get serial(): number {
    return this.outcome.serial
  }

  get limit(): number {
    return this.outcome.limit
  }

  get retryAfterMs(): number {
    if (this.allowed) return 0
    return this.outcome.never ? Number.POSITIVE_INFINITY : this.amount
  }

  get cost(): number {
    return this.reason === 'ok' ? this.amount : 0
  }

  get delayMs(): number {
    const { policy, reason, limit } = this.outcome
    return reason === 'ok' && policy?.dryRun === false ? (policy.algorithm.delay?.(this.remaining, limit, policy.interval) ?? 0) : 0
  }

  get dryRun(): boolean {
    return this.allowed && this.reason !== 'ok' && this.reason !== 'none'
  }

  get parts(): readonly PolicyDecision[] {
    return this.policy ? [this] : []
  }

  declare readonly toJSON: () => DecisionFields
}

/** Gives a class of decisions `toJSON`, which is also what logs show: it must not depend on which fields are computed. */
export function logAsJSON({ prototype }: { readonly prototype: Decision }): void {
  for (const name of ['toJSON', Symbol.for('nodejs.util.inspect.custom')]) Object.defineProperty(prototype, name, { value: toJSON })
}

function toJSON(this: Decision): DecisionFields {
  const { allowed, reason, policy, key, limit, remaining, resetAfterMs, retryAfterMs, delayMs, cost, dryRun } = this
  return { allowed, reason, policy, key, limit, remaining, resetAfterMs, retryAfterMs, delayMs, cost, dryRun }
}

logAsJSON(PolicyDecision)

/** A decision that differs from another one in some fields. */
export function changed<Name extends string>(decision: Decision<Name>, changes: Partial<DecisionFields>): Decision<Name> {
  return Object.assign(Object.create({ parts: decision.parts, toJSON }), decision.toJSON(), changes)
}

/** For a request to which no policy applies. */
export const NO_POLICY: PolicyDecision = new PolicyDecision(
  { policy: undefined, ordinal: 0 as Ordinal, serial: 0, reason: 'none', allowed: true, never: false, limit: Number.POSITIVE_INFINITY },
  '',
  Number.POSITIVE_INFINITY,
  0,
  0,
)
