import type { DecisionReason } from '../report/stats.ts'
import type { Ordinal } from '../time/intervals.ts'
import type { Outcome } from './outcome.ts'
import type { Policy } from './policy.ts'

/**
 * The decision of one policy about a request, or of several policies. With several, its fields are the ones of the policy that rejected for
 * longest. If all allowed, they are the ones of the policy with the smallest part of its limit left. `parts` contains the decision of each
 * policy. Fields are computed when they are read, so read the ones you need: `const { allowed, retryAfterMs } = decision`. A spread copies
 * none of them, which TypeScript reports. `{ ...decision.toJSON() }` copies all but `parts`.
 */
export declare abstract class Decision<Name extends string = string> {
  /** Whether the request is allowed. */
  get allowed(): boolean
  /** Why the request is allowed or rejected, see below. */
  get reason(): DecisionReason
  /** The policy that decided. Undefined if none applies. */
  get policy(): Policy<Name> | undefined
  /** The counted key. If it has more than 256 characters, its beginning and a hash. */
  get key(): string
  /** Units per interval, or in flight. `Infinity` without a policy. */
  get limit(): number
  /** Remaining units after this request, by the counts of this process. 0 for a blocked key. For buckets it counts up to the burst. */
  get remaining(): number
  /**
   * Time until all units are back if no other request comes. 0 if unknown (`concurrency()`).
   *
   * Then `limit` units fit, or the burst of a bucket. A block ends before it.
   */
  get resetAfterMs(): number
  /**
   * Time after which a rejected request would be allowed if no other came first, in whole milliseconds. 0 if it is allowed or the time is
   * unknown. `Infinity` (`null` in JSON) if it never fits.
   *
   * It is at most 1 ms too long (with `'central'` plus a round trip), and too short only if this process corrects its estimate of the
   * store's clock by more than 1 ms meanwhile. It is unknown with `concurrency()`.
   */
  get retryAfterMs(): number
  /**
   * How long an allowed request must wait before it continues, if `leakyBucket()` keeps a pace.
   *
   * The longest delay of several policies. 0 for all others.
   */
  get delayMs(): number
  /** Units that the request used and has not got back. 0 if it was rejected. */
  get cost(): number
  /** True if `dryRun` allowed a request that would have been rejected. */
  get dryRun(): boolean
  /**
   * One decision for each policy that applies.
   *
   * They are in the order of the policies.
   */
  get parts(): readonly Decision<Name>[]
  /**
   * Returns all fields but `parts` as a plain object.
   *
   * You can spread, store or send it.
   */
  toJSON(): DecisionFields<Name>
}

/** The fields of a decision in logs. */
export type DecisionFields<Name extends string = string> = Omit<Decision, 'policy' | 'parts' | 'toJSON'> & {
  readonly policy: Policy<Name> | undefined
}

/** A policy, the limit that applied to the key (by default the policy's own), and the interval. */
export interface Limited {
  readonly policy: Policy | undefined
  readonly limit?: number
  readonly ordinal?: Ordinal
}

/** The numbers of a decision of several policies. Reading them makes no parts. */
export interface Listed {
  /** The decision itself. Undefined for a decision that already has parts. */
  readonly listed: Listed
  /** The policy of each part. The same list for as many decisions as possible. */
  readonly policies: readonly Limited[]
  /** Remaining units of a part. */
  remainingAt(part: number): number
  /** Milliseconds until all units of a part are back. */
  resetAfterAt(part: number): number
}

/**
 * The decision of one policy. It has one constant shape, because one is made for each request, and Weir keeps none of them. It has few
 * fields, because making it is a large part of the cost of a decision. Values that follow from others are computed when they are read.
 * Fields are only declared, because a class field that is also defined is written twice.
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

  /** The ordinal of the interval or bucket that counted the cost. */
  get ordinal(): Ordinal {
    return this.outcome.ordinal
  }

  /** Distinguishes decisions from before and after a reset of the key. */
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

/** Adds `toJSON` to a class of decisions. Logs show the same fields, so they must not depend on which fields are computed. */
export function logAsJSON({ prototype }: { readonly prototype: Decision }): void {
  for (const name of ['toJSON', Symbol.for('nodejs.util.inspect.custom')]) Object.defineProperty(prototype, name, { value: toJSON })
}

function toJSON(this: Decision): DecisionFields {
  const { allowed, reason, policy, key, limit, remaining, resetAfterMs, retryAfterMs, delayMs, cost, dryRun } = this
  return { allowed, reason, policy, key, limit, remaining, resetAfterMs, retryAfterMs, delayMs, cost, dryRun }
}

logAsJSON(PolicyDecision)

/** An object that decisions of one policy share if they have the same interval, reason and limit. Undefined for several policies. */
export function outcomeOf(decision: Decision): object | undefined {
  return (decision as Partial<PolicyDecision>).outcome
}

/** A copy of a decision with some other fields. */
export function changed<Name extends string>(decision: Decision<Name>, changes: Partial<DecisionFields>): Decision<Name> {
  return Object.assign(Object.create({ parts: decision.parts, toJSON }), decision.toJSON(), changes)
}

/** The decision for a request to which no policy applies. */
export const NO_POLICY: PolicyDecision = new PolicyDecision(
  { policy: undefined, ordinal: 0 as Ordinal, serial: 0, reason: 'none', allowed: true, never: false, limit: Number.POSITIVE_INFINITY },
  '',
  Number.POSITIVE_INFINITY,
  0,
  0,
)
