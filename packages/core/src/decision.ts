import type { Policy } from './policy.ts'
import type { Ordinal } from './time.ts'

/**
 * Why a decision came out as it did.
 * - `'ok'`: allowed.
 * - `'limit'`: the key's units of this interval are used up, or the request costs more than what is left.
 * - `'cooldown'`: an excess blocked the key for the policy's cooldown.
 * - `'blocked'`: blocked by hand (`throttler.block`).
 * - `'degraded'`: refused by what this node may admit while the store is away.
 * - `'overflow'`: the table of keys is full and the throttler's `overflow` refuses new keys.
 * - `'none'`: allowed, as no policy applies.
 */
export type DecisionReason = 'ok' | 'limit' | 'cooldown' | 'blocked' | 'degraded' | 'overflow' | 'none'

/**
 * What was decided for one request by one policy, or by several: then it is the decision of the policy that refused
 * (for longest), or else of the one with the smallest part of its limit left, and `parts` holds all of them.
 */
export interface Decision<Name extends string = string> {
  /** Whether the request may go on. */
  readonly allowed: boolean
  readonly reason: DecisionReason
  /** The policy that this decision is of; undefined when none applies to the request. */
  readonly policy: Policy<Name> | undefined
  /** What the request was counted by in that policy. */
  readonly key: string
  /** Units per interval; `Infinity` when no policy applies. */
  readonly limit: number
  /** Units left to the key as far as this node knows, after this request; never negative. */
  readonly remaining: number
  /** Milliseconds until units come back: the end of the interval, or of the block. */
  readonly resetAfter: number
  /** Milliseconds after which a refused request would be let in if no other came before it; 0 when allowed. */
  readonly retryAfter: number
  /** Units that the request took; 0 when it was refused. */
  readonly cost: number
  /** True when `dryRun` let a request pass that would have been refused. */
  readonly dryRun: boolean
  /** One decision for each policy that applies, in the order of the policies. */
  readonly parts: readonly Decision<Name>[]
}

/**
 * The decision of one policy. One constant shape, made on each request and retained by nobody here; what follows from other
 * fields is computed when it is asked for. Fields are declared only, since a class field that is also defined is written
 * twice.
 */
export class PolicyDecision implements Decision {
  declare readonly allowed: boolean
  declare readonly reason: DecisionReason
  declare readonly policy: Policy | undefined
  declare readonly key: string
  declare readonly remaining: number
  declare readonly resetAfter: number
  /** What of `cost` has not been given back. */
  declare cost: number
  /** The cell that the cost was taken from. */
  declare readonly ordinal: Ordinal

  constructor(
    allowed: boolean,
    reason: DecisionReason,
    policy: Policy | undefined,
    key: string,
    remaining: number,
    resetAfter: number,
    cost: number,
    ordinal: Ordinal,
  ) {
    this.allowed = allowed
    this.reason = reason
    this.policy = policy
    this.key = key
    this.remaining = remaining
    this.resetAfter = resetAfter
    this.cost = cost
    this.ordinal = ordinal
  }

  get limit(): number {
    return this.policy === undefined ? Number.POSITIVE_INFINITY : this.policy.limit
  }

  get retryAfter(): number {
    return this.allowed ? 0 : this.resetAfter
  }

  get dryRun(): boolean {
    return this.allowed && this.reason !== 'ok' && this.reason !== 'none'
  }

  get parts(): readonly PolicyDecision[] {
    return this.policy === undefined ? [] : [this]
  }

  /** All of it but `parts`, also for spreading and logs. */
  toJSON(): Omit<Decision, 'parts'> {
    const { allowed, reason, policy, key, limit, remaining, resetAfter, retryAfter, cost, dryRun } = this
    return { allowed, reason, policy, key, limit, remaining, resetAfter, retryAfter, cost, dryRun }
  }
}

/** The decision of several policies on one request. */
export class CombinedDecision extends PolicyDecision {
  readonly #parts: readonly PolicyDecision[]

  constructor(decisive: PolicyDecision, parts: readonly PolicyDecision[]) {
    const { allowed, reason, policy, key, remaining, resetAfter, cost, ordinal } = decisive
    super(allowed, reason, policy, key, remaining, resetAfter, cost, ordinal)
    this.#parts = parts
  }

  override get parts(): readonly PolicyDecision[] {
    return this.#parts
  }
}

/** For a request to which no policy applies. */
export const NO_POLICY: PolicyDecision = new PolicyDecision(true, 'none', undefined, '', Number.POSITIVE_INFINITY, 0, 0, 0 as Ordinal)

/** Which of several decisions speaks for the request. */
function decisiveOf(parts: readonly PolicyDecision[]): PolicyDecision {
  let best = parts[0] as PolicyDecision
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i] as PolicyDecision
    if (part.allowed !== best.allowed) {
      if (!part.allowed) best = part
    } else if (part.allowed) {
      if (part.remaining / part.limit < best.remaining / best.limit) best = part
    } else if (part.retryAfter > best.retryAfter) best = part
  }
  return best
}

/** The decision that the parts of the policies make. */
export function combined(parts: readonly PolicyDecision[]): PolicyDecision {
  return parts.length === 1 ? (parts[0] as PolicyDecision) : new CombinedDecision(decisiveOf(parts), parts)
}
