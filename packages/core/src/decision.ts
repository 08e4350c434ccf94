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

/** What requests of a policy are counted in now. One object for all decisions until the policy or its interval changes. */
export interface RunningCell {
  readonly policy: Policy | undefined
  readonly dryRun: boolean
  readonly ordinal: Ordinal
}

export function runningCell(policy: Policy, ordinal: Ordinal): RunningCell {
  return { policy, dryRun: policy.dryRun, ordinal }
}

/**
 * The decision of one policy. One constant shape, made on each request and retained by nobody here. Its fields are few, as to
 * make it is a good part of what a decision costs: what follows from others is computed when it is asked for. They are declared
 * only, since a class field that is also defined is written twice.
 */
export class PolicyDecision implements Decision {
  declare readonly reason: DecisionReason
  declare readonly cell: RunningCell
  declare readonly key: string
  declare readonly remaining: number
  declare readonly resetAfter: number
  /** What of `cost` has not been given back. */
  declare cost: number

  constructor(reason: DecisionReason, cell: RunningCell, key: string, remaining: number, resetAfter: number, cost: number) {
    this.reason = reason
    this.cell = cell
    this.key = key
    this.remaining = remaining
    this.resetAfter = resetAfter
    this.cost = cost
  }

  get allowed(): boolean {
    return this.reason === 'ok' || this.reason === 'none' || this.cell.dryRun
  }

  get policy(): Policy | undefined {
    return this.cell.policy
  }

  /** The interval or bucket that the cost was taken from. */
  get ordinal(): Ordinal {
    return this.cell.ordinal
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
    return summary(this)
  }
}

/** The decision of several policies on one request: that of the decisive one, and all of them. */
export class CombinedDecision implements Decision {
  declare readonly decisive: PolicyDecision
  declare readonly parts: readonly PolicyDecision[]

  constructor(decisive: PolicyDecision, parts: readonly PolicyDecision[]) {
    this.decisive = decisive
    this.parts = parts
  }

  get allowed(): boolean {
    return this.decisive.allowed
  }

  get reason(): DecisionReason {
    return this.decisive.reason
  }

  get policy(): Policy | undefined {
    return this.decisive.policy
  }

  get key(): string {
    return this.decisive.key
  }

  get limit(): number {
    return this.decisive.limit
  }

  get remaining(): number {
    return this.decisive.remaining
  }

  get resetAfter(): number {
    return this.decisive.resetAfter
  }

  get retryAfter(): number {
    return this.decisive.retryAfter
  }

  get cost(): number {
    return this.decisive.cost
  }

  get dryRun(): boolean {
    return this.decisive.dryRun
  }

  toJSON(): Omit<Decision, 'parts'> {
    return summary(this)
  }
}

// What a log shows must not depend on which of these are fields.
for (const { prototype } of [PolicyDecision, CombinedDecision]) {
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), { value: prototype.toJSON })
}

function summary({
  allowed,
  reason,
  policy,
  key,
  limit,
  remaining,
  resetAfter,
  retryAfter,
  cost,
  dryRun,
}: Decision): Omit<Decision, 'parts'> {
  return { allowed, reason, policy, key, limit, remaining, resetAfter, retryAfter, cost, dryRun }
}

/** For a request to which no policy applies. */
export const NO_POLICY: PolicyDecision = new PolicyDecision(
  'none',
  { policy: undefined, dryRun: false, ordinal: 0 as Ordinal },
  '',
  Number.POSITIVE_INFINITY,
  0,
  0,
)

/** Which of several decisions speaks for the request. */
function decisiveOf(parts: readonly PolicyDecision[]): PolicyDecision {
  let best = parts[0] as PolicyDecision
  let allowed = best.allowed
  // The smallest counts: the part of the limit that is left, or the time until it is over, negative.
  let least = weight(best, allowed)
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i] as PolicyDecision
    if (!allowed && part.allowed) continue
    const mine = weight(part, part.allowed)
    if (part.allowed === allowed && mine >= least) continue
    best = part
    allowed = part.allowed
    least = mine
  }
  return best
}

function weight(part: PolicyDecision, allowed: boolean): number {
  return allowed ? part.remaining / part.limit : -part.resetAfter
}

/** The decision that the parts of the policies make. */
export function combined(parts: readonly PolicyDecision[]): PolicyDecision | CombinedDecision {
  return parts.length === 1 ? (parts[0] as PolicyDecision) : new CombinedDecision(decisiveOf(parts), parts)
}
