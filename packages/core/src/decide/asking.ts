import type { Clock } from '../time/clock.ts'
import type { Decision } from './decision.ts'
import type { Limiter } from './limiter.ts'

export type Keys = readonly (string | undefined)[]

/** For each policy the limit of its key in this decision; undefined for the policy's own. */
export type Limits = readonly (number | undefined)[]

/** The parts of the throttler that decisions with a wait need. */
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
  /** Decides by what is known here. A key that is undefined belongs to a policy that does not apply. */
  decide(keys: Keys, costs: readonly number[], count: boolean, places?: readonly number[], applied?: number): Decision
}

/** Decisions of policies of which some may have to wait for the store. */
export interface Asking {
  /** As `RequestPath.decideAsync`. A promise only when the request must wait. */
  decide(keys: Keys, costs: readonly number[], places: readonly number[], applied: number): Decision | Promise<Decision>
}
