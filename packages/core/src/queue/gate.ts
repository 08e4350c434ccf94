import type { Clock } from '../time/clock.ts'
import type { Amount } from './amount.ts'
import type { Answer } from './line.ts'
import type { Wanted } from './options.ts'
import type { Pace } from './turns.ts'

/** A request is to wait for a counter, and to be looked at again in so many milliseconds. */
export interface Pause {
  readonly by: Pick<Answer, 'policy' | 'key'>
  readonly time: number
}

/** How places are asked for ahead, so that each node is served by what waits with it and no place stays unused. Times in milliseconds. */
export interface Ahead {
  /** The counter of the policy that they are places of. */
  readonly by: Pick<Answer, 'policy' | 'key'>
  /** Whether to wait until places have come back that are free again: it is told of that (`nudge`). */
  readonly later: boolean
  /** Units to ask for at once, where so much waits. */
  unitsOf(waiting: Amount): number
}

/** Several requests that want the same, where the store can be asked for them in one step: all of them go, or none. */
export interface Together<D> {
  /** As many that take the same as this node should ask for at once, as other nodes may want some too; 0: whoever knows what came here lately knows better. */
  readonly part: number
  /** Such requests that find room, as far as is known. */
  readonly fit: number
  /** Units that the first of them takes. */
  readonly cost: number
  /** So many milliseconds before there is no time left the store is to be asked. */
  readonly lead: number
  /** Where the store says when each of them goes: it is asked ahead, and they may take more or less than the first one. */
  readonly ahead: Ahead | undefined
  /** Units of a request that may be requested together with the first one; undefined for one that has to wait for the answer. */
  costBeside(key: string, wanted: Wanted): number | undefined
  /**
   * Asks for requests that take so much each. Resolves with a decision for each of them, or with none where they do not all fit; without the
   * store, for as many as do.
   *
   * @param within milliseconds that the first of them may wait
   */
  take(costs: readonly number[], within: number): Promise<readonly D[]>
}

/** Decides which requests may go. */
export interface Gate<D extends Answer> {
  readonly clock: Clock
  /** Uniform in [0, 1). */
  readonly random: () => number
  /** Whether `take` may have to ask the store. */
  readonly waits: boolean
  /** The decision that `take` would return by the counts of this process. */
  peek(key: string, wanted: Wanted): D
  /** Whether `take` would ask the store although `peek` rejects. */
  asks(key: string, wanted: Wanted): boolean
  /** Whether a request that was rejected finds what it needs, for all that is known: the store had just not granted it in time. */
  mayAskAgain(key: string, wanted: Wanted): boolean
  /**
   * Why a request which `peek` allows should wait all the same: other nodes may take units at the same time, and are to be heard first.
   * Undefined when it may go. Not asked where `take` asks the store.
   *
   * @param overload whether requests go in turns now
   */
  pause(key: string, wanted: Wanted, overload: boolean): Pause | undefined
  /**
   * The requests that wait for a policy are to go in turns when there is room again, as other nodes have some that wait for the same. Undefined
   * where there is nobody to share with.
   *
   * @param closedFor milliseconds for which there is no room
   */
  turns(policy: string, closedFor: number): Pace | undefined
  /** Whether units are reserved ahead for requests that wait for a policy: see `Together.ahead`. */
  reservesAhead(policy: string): boolean
  /** Counts a request if it may go. Right after a `peek` that allowed it, unless it asks the store. */
  take(key: string, wanted: Wanted): D | Promise<D>
  /** How requests like this one are asked for together; undefined where each is asked for alone. */
  together(key: string, wanted: Wanted): Together<D> | undefined
  /** Whether a decision is of one policy alone that gives places ahead, of several: the others decide when its delay is over. */
  isPart(decision: D): boolean
  /** Has the other ones decide, as `take`; undefined where there are none any more. */
  takeRest(key: string, wanted: Wanted, part: D): D | Promise<D> | undefined
  /** One decision of both. */
  join(part: D, rest: D): D
  refund(decision: D): void
  /**
   * The rejection of a request that can't wait any longer although there is, or would be, capacity for it.
   *
   * @param seen what is known now
   * @param retryAfterMs milliseconds, where known
   */
  rejection(seen: D, retryAfterMs: number | undefined): D
  /** Counts a request that has waited: allowed or rejected. Not called for one that was aborted. */
  ended(allowed: boolean): void
  /**
   * The pace that a decision with a delay keeps, in milliseconds: the time that passes between it and the next one, and by how much a late one may
   * come nearer to that.
   */
  pace(decision: D): { readonly time: number; readonly slack: number }
  /** Names the counter whose pace a decision with a delay keeps. */
  paceMaker(decision: D): string
  /** A request goes that waited for a policy, for so many milliseconds. `key` is what the policy counts it by. */
  waited(policy: string, key: string, time: number): void
  /** A decision whose delay is over, as it is now. */
  went(decision: D): D
  /** Whether the key of a decision is blocked by hand now. */
  blocks(decision: D): boolean
  /** Whether other nodes may have places between those that keep this decision's pace here. */
  sharesPlaces(decision: D): boolean
  /**
   * Gives back what a decision took of whose delay `left` milliseconds are left: of what has a pace as much as has not drained yet.
   *
   * @returns milliseconds by which those behind it move up
   */
  giveBack(decision: D, left: number): number
  /** Milliseconds until so many requests, and units besides, can have gone one after another at the soonest. */
  soonest(key: string, requests: number, units: number, wanted: Wanted): number
}
