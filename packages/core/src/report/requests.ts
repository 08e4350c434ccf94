import type { Emitter } from './events.ts'
import type { DecisionReason, RefusalReason } from './stats.ts'

/**
 * Why a request was refused: as decisions say, of several policies by the one that refused for longest; or `'denied'`: it was on an
 * adapter's `deny` list; or `'queue'`: it waited for its turn, or was to, and could not go in time.
 */
export type RequestRefusal = RefusalReason | 'denied' | 'queue'

export const REQUEST_REFUSALS: readonly RequestRefusal[] = ['limit', 'cooldown', 'blocked', 'degraded', 'overflow', 'denied', 'queue']

/** Milliseconds of one slot of the history, and how many slots are kept: half an hour. */
export const SLOT = 15_000
export const SLOTS = 120

/**
 * Requests that a throttler has decided about since its start, however many policies took part in it, and in each quarter of a minute
 * of the last half hour: who looks when something has gone wrong wants to see how it began. It holds two kilobytes.
 */
export class Requests {
  /** Requests that were let pass, those too that a dry run did. */
  admitted = 0
  readonly reasons: Record<RequestRefusal, number> = Object.fromEntries(REQUEST_REFUSALS.map((reason) => [reason, 0])) as Record<
    RequestRefusal,
    number
  >
  /** Rings of the slots that have ended: of slot n, counted from the start, at n % SLOTS. */
  readonly slots: Readonly<Record<'admitted' | 'refused', Float64Array>> = {
    admitted: new Float64Array(SLOTS),
    refused: new Float64Array(SLOTS),
  }
  /** How many slots have ended, and when the newest did, on the monotonic clock. */
  ended = 0
  end: number
  /** What the sums were then. */
  #sums = { admitted: 0, refused: 0 }

  readonly #emitter: Pick<Emitter, 'due' | 'deliver'> | undefined

  /**
   * @param now on the monotonic clock
   * @param emitter whose listeners hear of what happened in a decision once that is made
   */
  constructor(now: number, emitter?: Pick<Emitter, 'due' | 'deliver'>) {
    this.end = now
    this.#emitter = emitter
  }

  get refused(): number {
    return REQUEST_REFUSALS.reduce((sum, reason) => sum + this.reasons[reason], 0)
  }

  /** Counts a request that was decided about. */
  count(allowed: boolean, reason: DecisionReason): void {
    if (allowed) this.admitted++
    else this.reasons[reason as RefusalReason]++
    if (this.#emitter?.due === true) this.#emitter.deliver()
  }

  /** A request that was counted as refused went on all the same: the adapter refuses nothing. */
  passedAnyway(reason: RequestRefusal): void {
    this.reasons[reason]--
    this.admitted++
  }

  /**
   * Ends the slots that are over. It asks for no timer of its own: with a store it comes with the heartbeats. Of a longer pause nobody
   * knows when in it requests came; they are spread evenly.
   */
  tick(now: number): void {
    const over = Math.floor((now - this.end) / SLOT)
    if (over <= 0) return
    const { admitted, refused, slots } = this
    for (let i = 0; i < Math.min(over, SLOTS); i++) {
      const at = this.ended++ % SLOTS
      slots.admitted[at] = Math.max(0, admitted - this.#sums.admitted) / over
      slots.refused[at] = Math.max(0, refused - this.#sums.refused) / over
    }
    this.#sums = { admitted, refused }
    this.end += over * SLOT
  }
}
