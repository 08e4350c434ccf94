import type { DecisionReason } from '../report/stats.ts'
import { type Decision, type DecisionFields, type Listed, logAsJSON, PolicyDecision } from './decision.ts'
import type { RunningCell } from './outcome.ts'
import type { Policy } from './policy.ts'

/** The decision of several policies about one request: the values of the decisive one, and all parts. */
class CombinedDecision implements Decision {
  declare readonly decisive: PolicyDecision
  declare readonly parts: readonly PolicyDecision[]

  constructor(parts: readonly PolicyDecision[]) {
    this.decisive = decisiveOf(parts)
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

  get resetAfterMs(): number {
    return this.decisive.resetAfterMs
  }

  get retryAfterMs(): number {
    return this.decisive.retryAfterMs
  }

  get delayMs(): number {
    return this.allowed ? Math.max(...this.parts.map(({ delayMs: delay }) => delay)) : 0
  }

  get cost(): number {
    return this.decisive.cost
  }

  get dryRun(): boolean {
    return this.decisive.dryRun
  }

  declare readonly toJSON: () => DecisionFields
}

/** The policies that applied to a request, each with its running interval. One object for all requests until one of them changes. */
export interface Levels {
  readonly cells: readonly RunningCell[]
  /** The shared key of a policy that counts all requests together. Undefined for other policies. */
  readonly keys: readonly (string | undefined)[]
}

/** The most policies of a `LevelsDecision`, because it has a bit for each. */
export const MOST_LEVELS = 30

/**
 * The decision of several policies that each allow the request or are full, as most are. It stores the numbers of that moment side by side.
 * It makes parts only when they are read.
 *
 *     levels    shared: the policies with their intervals
 *     keys      one key for all policies, or a key for each
 *     numbers   remaining, resetAfterMs, amount of the first policy (see `PolicyDecision`) | of the second | …
 *     rejected  a bit for each policy that is full
 */
export class LevelsDecision implements Decision, Listed {
  declare readonly levels: Levels
  declare readonly keys: string | readonly string[]
  declare readonly numbers: readonly number[]
  declare readonly rejected: number
  declare whole: CombinedDecision | undefined

  // Don't extend a base class: under some TypeScript loaders V8 compiles a derived constructor again and again.
  constructor(levels: Levels, keys: string | readonly string[], numbers: readonly number[], rejected: number) {
    this.levels = levels
    this.keys = keys
    this.numbers = numbers
    this.rejected = rejected
    this.whole = undefined
  }

  get allowed(): boolean {
    return this.rejected === 0
  }

  /** A gate either allows a request or is full. */
  get reason(): DecisionReason {
    return this.rejected === 0 ? 'ok' : 'limit'
  }

  get policy(): Policy | undefined {
    return this.#combined().policy
  }

  get key(): string {
    return this.#combined().key
  }

  get limit(): number {
    return this.#combined().limit
  }

  get remaining(): number {
    return this.#combined().remaining
  }

  get resetAfterMs(): number {
    return this.#combined().resetAfterMs
  }

  get retryAfterMs(): number {
    return this.#combined().retryAfterMs
  }

  get delayMs(): number {
    return this.#combined().delayMs
  }

  get cost(): number {
    return this.#combined().cost
  }

  get dryRun(): boolean {
    return false
  }

  get parts(): readonly PolicyDecision[] {
    return this.#combined().parts
  }

  declare readonly toJSON: () => DecisionFields

  get listed(): LevelsDecision {
    return this
  }

  get policies(): readonly RunningCell[] {
    return this.levels.cells
  }

  remainingAt(level: number): number {
    return this.numbers[3 * level] as number
  }

  resetAfterAt(level: number): number {
    return Math.ceil(this.numbers[3 * level + 1] as number)
  }

  #combined(): CombinedDecision {
    this.whole ??= new CombinedDecision(this.levels.cells.map((cell, level) => this.#part(cell, level)))
    return this.whole
  }

  #part({ passed, full }: RunningCell, level: number): PolicyDecision {
    const key = typeof this.keys === 'string' ? (this.levels.keys[level] ?? this.keys) : (this.keys[level] as string)
    const outcome = (this.rejected & (1 << level)) === 0 ? passed : full
    const amount = this.numbers[3 * level + 2] as number
    const told = outcome === full ? Math.ceil(amount) : amount
    return new PolicyDecision(outcome, key, this.remainingAt(level), this.resetAfterAt(level), told)
  }
}

logAsJSON(CombinedDecision)
logAsJSON(LevelsDecision)

/** The decisive part: the rejection with the longest time, or else the part with the least remaining quota. */
function decisiveOf(parts: readonly PolicyDecision[]): PolicyDecision {
  let best = parts[0] as PolicyDecision
  let allowed = best.allowed
  // The smallest weight wins: the remaining part of the limit, or the negative time until the request would be allowed.
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
  return allowed ? part.remaining / part.limit : -part.retryAfterMs
}

/** Combines the parts of the policies into one decision. */
export function combined(parts: readonly PolicyDecision[]): Decision {
  return parts.length === 1 ? (parts[0] as PolicyDecision) : new CombinedDecision(parts)
}
