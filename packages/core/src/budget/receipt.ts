import type { Held } from '../algorithms/holds.ts'
import type { Costs, PlacedCosts } from '../decide/costs.ts'
import { type Decision, type DecisionFields, logAsJSON } from '../decide/decision.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import type { DecisionReason } from '../report/stats.ts'
import type { Awaited, Line } from '../time/timeouts.ts'

/** How a reservation ends. */
export type Ending = 'settled' | 'cancelled' | 'expired'

/**
 * The decision of `reserve`, and the reservation if it is allowed. After the call, `settle` counts its real use. If nothing does, the
 * reservation settles itself after its `ttl`.
 *
 * If the policies rejected it, nothing is reserved, and the methods do nothing.
 */
export interface Receipt<Name extends string = string> extends Decision<Name> {
  /** Whether units are reserved: allowed, and not settled, cancelled or expired. */
  readonly isOpen: boolean
  /**
   * Reports how many units the call has used so far: totals, of which the largest counts. Cheap enough for each chunk of a stream.
   *
   * @param totals whole numbers of at least 0 for some policies, by name. Fractions are rounded up. Anything else is ignored, with one
   * `warning`
   */
  used(totals: Costs<Name>): void
  /**
   * Ends the reservation, and counts the units that the call really used. Units above the reserved ones are charged, even above the limit.
   * Unused ones return to the interval or bucket that counted them, and never to a later one. Slots are released. A second call changes
   * nothing.
   *
   * @param actual as for `used`. Policies without a number count the last number of `used`, or else the reserved units
   */
  settle(actual?: Costs<Name>): void
  /** Ends the reservation and returns all units, because the call was never made. */
  cancel(): void
  /** Settles, at the end of a block with `using`. */
  [Symbol.dispose](): void
}

/** The reservations that a receipt belongs to. */
interface Owner {
  /** The receipt has reported its use. */
  used(receipt: OpenReceipt, totals: Costs): void
  end(receipt: OpenReceipt, ending: Ending, actual: Costs | undefined): void
}

/** The reserved units, and the limiters that counted them, by index. */
export interface Reserved extends PlacedCosts {
  readonly limiters: readonly Limiter[]
}

/** A reservation of this process, with its place in the line of those that end after the same time. */
export class OpenReceipt implements Receipt, Awaited {
  readonly decision: Decision
  readonly reserved: Reserved
  readonly #owner: Owner
  /** Whether units without a reported use return if it expires. */
  readonly refunds: boolean
  isOpen: boolean
  /** The largest totals of `used`, by policy name. */
  totals: Record<string, number> | undefined
  /** For each part of the decision, the reservation as the store has it. */
  held: (Held | undefined)[] | undefined
  /** Its name among reservations with an `id`. */
  name: string | undefined
  endsAt = 0
  earlier: this | undefined
  later: this | undefined
  line: Line<this> | undefined

  constructor(decision: Decision, reserved: Reserved, owner: Owner, refunds: boolean) {
    this.decision = decision
    this.reserved = reserved
    this.#owner = owner
    this.refunds = refunds
    // A dry run of a guard allows requests that used nothing. Only then the parts are read here, because reading them makes them.
    this.isOpen = decision.allowed && (!decision.dryRun || decision.parts.every(({ allowed }) => allowed))
  }

  used(totals: Costs): void {
    if (this.isOpen) this.#owner.used(this, totals)
  }

  settle(actual?: Costs): void {
    if (this.isOpen) this.#owner.end(this, 'settled', actual)
  }

  cancel(): void {
    if (this.isOpen) this.#owner.end(this, 'cancelled', undefined)
  }

  [Symbol.dispose](): void {
    this.settle()
  }

  get allowed(): boolean {
    return this.decision.allowed
  }

  get reason(): DecisionReason {
    return this.decision.reason
  }

  get policy(): Policy | undefined {
    return this.decision.policy
  }

  get key(): string {
    return this.decision.key
  }

  get limit(): number {
    return this.decision.limit
  }

  get remaining(): number {
    return this.decision.remaining
  }

  get resetAfterMs(): number {
    return this.decision.resetAfterMs
  }

  get retryAfterMs(): number {
    return this.decision.retryAfterMs
  }

  get delayMs(): number {
    return this.decision.delayMs
  }

  get cost(): number {
    return this.decision.cost
  }

  get dryRun(): boolean {
    return this.decision.dryRun
  }

  get parts(): readonly Decision[] {
    return this.decision.parts
  }

  declare readonly toJSON: () => DecisionFields
}

logAsJSON(OpenReceipt)
