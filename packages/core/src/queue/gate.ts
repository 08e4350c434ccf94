import type { Clock } from '../time/clock.ts'
import type { Amount } from './amount.ts'
import type { Asked } from './asked.ts'
import type { Answer } from './line.ts'
import type { Wanted } from './options.ts'
import type { Pace } from './turns.ts'

/** Makes a request wait for a counter. The queue checks it again after `time` milliseconds. */
export interface Pause {
  readonly by: Pick<Answer, 'policy' | 'key'>
  readonly time: number
}

/**
 * Describes how to request reservations ahead. Each process reserves for its own waiting requests, and no reservation stays unused. Times
 * in milliseconds.
 */
export interface Ahead {
  /** The counter that the reservations belong to. */
  readonly by: Pick<Answer, 'policy' | 'key'>
  /** Whether to wait because cancelled reservations are being returned to the store. Afterwards the queue gets a `nudge`. */
  readonly later: boolean
  /** Units to request in one call, for this size of waiting requests. */
  unitsOf(waiting: Amount): number
}

/** Requests that the store can decide in one step: it allows all of them, or none. */
export interface Together<D> {
  /**
   * The most requests to send in one call, because other processes may need capacity too. 0 if the share is smaller than one request. Then
   * the queue sends one.
   */
  readonly part: number
  /** The number of such requests that fit, by the counts of this process. */
  readonly fit: number
  /** Units of the first request. */
  readonly cost: number
  /** A request is sent at least this many milliseconds before its timeout. */
  readonly lead: number
  /** Set if the store returns the time of each request. Then the process reserves ahead, and the requests may have different costs. */
  readonly ahead: Ahead | undefined
  /** Units of a request that may go into the call of the first one. Undefined for a request that must wait for the reply. */
  costBeside(key: string, wanted: Wanted): number | undefined
  /**
   * Requests capacity for one request of each cost. Resolves with a decision for each of them, or with none if they do not all fit. If the
   * store is down, it resolves with decisions for as many as fit.
   *
   * @param within milliseconds that the first of them may wait
   */
  take(costs: readonly number[], within: number): Promise<readonly D[]>
}

/** The pace of a decision with a delay. Times in milliseconds. */
export interface DecisionPace {
  /** The id of the counter that sets it. */
  readonly counter: string
  /** The time between the decision and the next one. */
  readonly time: number
  /** If the decision is late, the distance may shrink by up to this. */
  readonly slack: number
  /** Whether other processes may have reservations in between the ones of this process. */
  readonly shared: boolean
}

/** Decides which requests may go. */
export interface Gate<D extends Answer> {
  readonly clock: Clock
  /** Uniform in [0, 1). */
  readonly random: () => number
  /** Whether `take` may need the store. */
  readonly waits: boolean
  /** A request's key and cost for each policy, from costs by policy name. */
  askedBy(key: string, cost: { readonly [policy: string]: number | undefined }, limit: number | undefined): Asked
  /** The decision that `take` would return by the counts of this process. */
  peek(key: string, wanted: Wanted): D
  /** Whether `take` would call the store although `peek` rejects. */
  asks(key: string, wanted: Wanted): boolean
  /** Whether a rejected request fits, by the counts of this process, because the store only failed to grant it in time. */
  mayAskAgain(key: string, wanted: Wanted): boolean
  /**
   * The reason to delay a request which `peek` allows: other processes may use units at the same time, and their counts must arrive first.
   * Undefined if the request is allowed. Not called if `take` calls the store.
   *
   * @param overload whether requests take turns now
   */
  pause(key: string, wanted: Wanted, overload: boolean): Pause | undefined
  /**
   * Makes the requests that wait for a policy take turns once there is capacity again, because other processes have requests that wait for
   * the same. Undefined if no other process shares the capacity.
   *
   * @param closedFor milliseconds without capacity
   */
  turns(policy: string, closedFor: number): Pace | undefined
  /** Whether units are reserved ahead for requests that wait for a policy: see `Together.ahead`. */
  reservesAhead(policy: string): boolean
  /** Counts a request if it is allowed. Called right after a `peek` that allowed it, unless it calls the store. */
  take(key: string, wanted: Wanted): D | Promise<D>
  /** Describes how to send requests like this one together. Undefined if each is sent alone. */
  together(key: string, wanted: Wanted): Together<D> | undefined
  /** Whether a decision contains only the policy that reserves ahead. The other policies decide when the delay has ended. */
  isPart(decision: D): boolean
  /** Decides by the other policies, as `take` does. Undefined if there are none any more. */
  takeRest(key: string, wanted: Wanted, part: D): D | Promise<D> | undefined
  /** Combines both into one decision. */
  join(part: D, rest: D): D
  refund(decision: D): void
  /**
   * The rejection of a request that can't wait any longer, even if there is or would be capacity for it.
   *
   * @param seen the current decision by the counts of this process
   * @param retryAfterMs milliseconds, if known
   */
  rejection(seen: D, retryAfterMs: number | undefined): D
  /** Counts a request that has waited as allowed or rejected. Not called for aborted requests. */
  readonly ended: (allowed: boolean) => void
  /** The pace that delays a decision. */
  pace(decision: D): DecisionPace
  /** Reports an allowed request and the milliseconds that it waited. `key` is the policy's key. */
  waited(policy: string, key: string, time: number): void
  /** Updates a decision whose delay has ended to the current counts. */
  went(decision: D): D
  /** Whether the key of a decision is blocked manually now. */
  blocks(decision: D): boolean
  /**
   * Refunds a decision whose delay ends in `left` milliseconds. At a policy with a pace, only the units that have not drained yet are
   * refunded.
   *
   * @returns milliseconds by which the reservations behind it move up
   */
  giveBack(decision: D, left: number): number
  /** Milliseconds until this many requests, plus these units, can have been allowed one after another at the soonest. */
  soonest(key: string, requests: number, units: number, wanted: Wanted): number
}
