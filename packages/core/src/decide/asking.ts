import type { OpenReservation } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import type { Decision } from './decision.ts'
import type { Limiter } from './limiter.ts'

export type Keys = readonly (string | undefined)[]

/** The limit of each policy's key in this decision. Undefined for the policy's own limit. */
export type Limits = readonly (number | undefined)[]

/** A reservation that the store opens in the same step in which it counts a request. */
export interface Opening {
  readonly id: number
  /** Milliseconds until it settles itself. */
  readonly ttl: number
  /** Whether its units return then, if no use was reported. */
  readonly refunds: boolean
  /** The parts that the store has opened, or may have, by the id of their policy. */
  readonly opened: Map<string, { readonly key: string; readonly held: OpenReservation }>
}

/** The parts of the throttler that decisions with a wait need. */
export interface AskingHost {
  readonly clock: Clock
  /** One limiter for each policy, in the order of the policies. */
  readonly limiters: readonly Limiter[]
  /** Brings a limiter to the running interval. Throws after the throttler was closed. */
  roll(limiter: Limiter, now: number): void
  costOf(cost: number | undefined, index: number): number
  /** Notes the limits of the keys of a request before it waits. The returned function restores them. */
  noteLimits(keys: Keys): () => void
  /** Restores the limit that came with a request, as `Limiter.givenTo` returned it. */
  giveAgain(limiter: Limiter, key: string, limit: number | undefined): void
  /** Decides by the counts of this process. An undefined key belongs to a policy that does not apply. */
  decide(keys: Keys, costs: readonly number[], count: boolean, places?: readonly number[], applied?: number): Decision
}

/** Decides by policies of which some may need the store. */
export interface Asking {
  /** Does the same as `RequestPath.decideAsync`. Returns a promise only if the request must wait. */
  decide(keys: Keys, costs: readonly number[], places: readonly number[], applied: number, opens?: Opening): Decision | Promise<Decision>
}
