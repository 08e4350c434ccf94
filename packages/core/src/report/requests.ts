import type { Emitter } from './events.ts'
import type { DecisionReason, RejectionReason } from './stats.ts'

/**
 * Why a request was rejected: as decisions say, of several policies by the one that rejected for longest; or `'denied'`: it was on an
 * adapter's `deny` list; or `'queue'`: it waited for its turn, or was to, and could not go in time.
 */
export type RequestRejection = RejectionReason | 'denied' | 'queue'

export const REQUEST_REJECTIONS: readonly RequestRejection[] = ['limit', 'cooldown', 'blocked', 'storeDown', 'overflow', 'denied', 'queue']

/** Milliseconds of one slot of the history, and how many slots are kept: half an hour. */
export const SLOT = 15_000
export const SLOTS = 120

/**
 * Requests that a throttler has decided about since its start, however many policies took part in it, and in each quarter of a minute
 * of the last half hour: who looks when something has gone wrong wants to see how it began. It holds two kilobytes.
 */
export class Requests {
  /** Requests that were let pass, those too that a dry run did. */
  allowed = 0
  readonly reasons: Record<RequestRejection, number> = Object.fromEntries(REQUEST_REJECTIONS.map((reason) => [reason, 0])) as Record<
    RequestRejection,
    number
  >
  /** Rings of the slots that have ended: of slot n, counted from the start, at n % SLOTS. */
  readonly slots: Readonly<Record<'allowed' | 'rejected', Float64Array>> = {
    allowed: new Float64Array(SLOTS),
    rejected: new Float64Array(SLOTS),
  }
  /** How many slots have ended, and when the newest did, on the monotonic clock. */
  ended = 0
  end: number
  /** The sums when the newest slot ended. */
  #sums = { allowed: 0, rejected: 0 }

  readonly #emitter: Pick<Emitter, 'due' | 'deliver'> | undefined

  /**
   * @param now on the monotonic clock
   * @param emitter whose listeners hear of what happened in a decision once that is made
   */
  constructor(now: number, emitter?: Pick<Emitter, 'due' | 'deliver'>) {
    this.end = now
    this.#emitter = emitter
  }

  get rejected(): number {
    return REQUEST_REJECTIONS.reduce((sum, reason) => sum + this.reasons[reason], 0)
  }

  /** Counts a request that was decided about. */
  count(allowed: boolean, reason: DecisionReason): void {
    if (allowed) this.allowed++
    else this.reasons[reason as RejectionReason]++
    if (this.#emitter?.due === true) this.#emitter.deliver()
  }

  /** A request that was counted as rejected went on all the same: the adapter rejects nothing. */
  passedAnyway(reason: RequestRejection): void {
    this.reasons[reason]--
    this.allowed++
  }

  /**
   * Ends the slots that are over. It asks for no timer of its own: with a store it comes with the heartbeats. Of a longer pause nobody
   * knows when in it requests came; they are spread evenly.
   */
  tick(now: number): void {
    const over = Math.floor((now - this.end) / SLOT)
    if (over <= 0) return
    const { allowed, rejected, slots } = this
    for (let i = 0; i < Math.min(over, SLOTS); i++) {
      const at = this.ended++ % SLOTS
      slots.allowed[at] = Math.max(0, allowed - this.#sums.allowed) / over
      slots.rejected[at] = Math.max(0, rejected - this.#sums.rejected) / over
    }
    this.#sums = { allowed, rejected }
    this.end += over * SLOT
  }
}
