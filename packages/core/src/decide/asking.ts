import type { Clock } from '../time/clock.ts'
import type { Decision, PolicyDecision } from './decision.ts'
import type { Limiter } from './limiter.ts'
import type { Outcome } from './outcome.ts'

export type Keys = readonly (string | undefined)[]

/** For each policy the limit of its key in this decision; undefined for the policy's own. */
export type Limits = readonly (number | undefined)[]

/** What decisions that may wait need of the throttler that they are made for. */
export interface AskingHost {
  readonly clock: Clock
  /** One for each policy, in their order. */
  readonly limiters: readonly Limiter[]
  /** Brings a limiter to the running interval; throws once the throttler is closed. */
  roll(limiter: Limiter, now: number): void
  costOf(cost: number | undefined, index: number): number
  /** Notes the limits that keys have in a request that is to wait; the function that is returned gives them again. */
  noteLimits(keys: Keys): () => void
  /** Gives a key the limit again that a request came with, as `Limiter.givenTo` told it. */
  giveAgain(limiter: Limiter, key: string, limit: number | undefined): void
  // What decisions are made of. Handed over, since whoever asks is loaded later: what it imports would be in a file of its own.
  readonly make: {
    reject(limiter: Limiter, slot: number, key: string, cost: number, now: number): PolicyDecision
    decision(outcome: Outcome, key: string, remaining: number, resetAfterMs: number, amount: number): PolicyDecision
    combined(parts: readonly PolicyDecision[]): Decision
    bounded(key: string): string
  }
  /** Decides by what is known here. A key that is undefined belongs to a policy that does not apply. */
  decide(keys: Keys, costs: readonly number[], count: boolean, places?: readonly number[], applied?: number): Decision
}

/** Decisions of policies of which some may have to wait for the store. */
export interface Asking {
  /** As `RequestPath.decideAsync`. A promise only when the request must wait. */
  decide(keys: Keys, costs: readonly number[], places: readonly number[], applied: number): Decision | Promise<Decision>
}
