import { type Decision, PolicyDecision, summary } from './decision.ts'
import type { DecisionReason, RunningCell } from './outcome.ts'
import type { Policy } from './policy.ts'

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

/** The policies that a request passed, each with its running interval, and by which key. One object for all such requests until one of them changes. */
export class Levels {
  readonly cells: readonly RunningCell[]
  /** The key of policies by which all requests share one counter; undefined at others. */
  readonly keys: readonly (string | undefined)[]

  constructor(cells: readonly RunningCell[], keys: readonly (string | undefined)[]) {
    this.cells = cells
    this.keys = keys
  }
}

/** Where a level's numbers are in `PassedDecision.numbers`, relative to `level * STRIDE`. */
const STRIDE = 3
const REMAINING = 0
const RESET_AFTER = 1
const COST = 2

/**
 * The decision of several policies that all let a request pass, which most decisions of several policies are. It holds the
 * numbers of that moment side by side, and makes parts of them only when somebody asks:
 *
 *     levels    shared: the policies with their intervals
 *     keys      one key for all policies, or a key for each
 *     numbers   remaining, resetAfter, cost of the first policy | of the second | …
 */
export class PassedDecision implements Decision {
  declare readonly levels: Levels
  declare readonly keys: string | readonly string[]
  declare readonly numbers: readonly number[]
  declare whole: CombinedDecision | undefined

  constructor(levels: Levels, keys: string | readonly string[], numbers: readonly number[]) {
    this.levels = levels
    this.keys = keys
    this.numbers = numbers
    this.whole = undefined
  }

  get allowed(): boolean {
    return true
  }

  get reason(): DecisionReason {
    return 'ok'
  }

  get dryRun(): boolean {
    return false
  }

  get retryAfter(): number {
    return 0
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

  get resetAfter(): number {
    return this.#combined().resetAfter
  }

  get cost(): number {
    return this.#combined().cost
  }

  get parts(): readonly PolicyDecision[] {
    return this.#combined().parts
  }

  toJSON(): Omit<Decision, 'parts'> {
    return summary(this)
  }

  /** Units left at one of the levels. */
  remainingAt(level: number): number {
    return this.numbers[level * STRIDE + REMAINING] as number
  }

  /** Milliseconds until units come back at one of the levels. */
  resetAfterAt(level: number): number {
    return Math.ceil(this.numbers[level * STRIDE + RESET_AFTER] as number)
  }

  #combined(): CombinedDecision {
    this.whole ??= combined(this.levels.cells.map((cell, level) => this.#part(cell, level))) as CombinedDecision
    return this.whole
  }

  #part({ passed }: RunningCell, level: number): PolicyDecision {
    const key = typeof this.keys === 'string' ? (this.levels.keys[level] ?? this.keys) : (this.keys[level] as string)
    const cost = this.numbers[level * STRIDE + COST] as number
    return new PolicyDecision(passed, key, this.remainingAt(level), this.resetAfterAt(level), cost)
  }
}

// What a log shows must not depend on which of these are fields.
for (const { prototype } of [CombinedDecision, PassedDecision]) {
  Object.defineProperty(prototype, Symbol.for('nodejs.util.inspect.custom'), { value: prototype.toJSON })
}

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
