import type { Emitter } from './events.ts'
import type { DecisionReason, RejectionReason } from './stats.ts'

/**
 * The reason for which a request was rejected. It is the decision's reason. If several policies rejected, it comes from the policy with the
 * longest wait. `'denied'`: the client is on an adapter's `deny` list. `'queue'`: the request had to wait, and could not be allowed in
 * time.
 */
export type RequestRejection = RejectionReason | 'denied' | 'queue'

export const REQUEST_REJECTIONS: readonly RequestRejection[] = ['limit', 'cooldown', 'blocked', 'storeDown', 'overflow', 'denied', 'queue']

/** The length of one slot of the history in milliseconds, and the number of slots that are kept: half an hour. */
export const SLOT = 15_000
export const SLOTS = 120

/**
 * Counts the requests that a throttler has decided since its start, each once however many policies took part. It also keeps the counts of
 * each slot of the last half hour, because they show how an incident began. It takes two kilobytes.
 */
export class Requests {
  /** Allowed requests, including requests that only a dry run allowed. */
  allowed = 0
  readonly reasons: Record<RequestRejection, number> = Object.fromEntries(REQUEST_REJECTIONS.map((reason) => [reason, 0])) as Record<
    RequestRejection,
    number
  >
  /** Rings of the slots that have ended. Slot n since the start is at index n % SLOTS. */
  readonly slots: Readonly<Record<'allowed' | 'rejected', Float64Array>> = {
    allowed: new Float64Array(SLOTS),
    rejected: new Float64Array(SLOTS),
  }
  /** The number of slots that have ended, and the time at which the newest one did, on the monotonic clock. */
  ended = 0
  end: number
  /** The sums when the newest slot ended. */
  #sums = { allowed: 0, rejected: 0 }

  readonly #emitter: Pick<Emitter, 'due' | 'deliver'> | undefined

  /**
   * @param now on the monotonic clock
   * @param emitter delivers the events of a decision once it is made
   */
  constructor(now: number, emitter?: Pick<Emitter, 'due' | 'deliver'>) {
    this.end = now
    this.#emitter = emitter
  }

  get rejected(): number {
    return REQUEST_REJECTIONS.reduce((sum, reason) => sum + this.reasons[reason], 0)
  }

  /** Counts a request after its decision. */
  count(allowed: boolean, reason: DecisionReason): void {
    if (allowed) this.allowed++
    else this.reasons[reason as RejectionReason]++
    if (this.#emitter?.due === true) this.#emitter.deliver()
  }

  /** Counts a rejected request as allowed, because the adapter's `dryRun` rejects nothing. */
  passedAnyway(reason: RequestRejection): void {
    this.reasons[reason]--
    this.allowed++
  }

  /**
   * Ends the slots whose time is up. It has no timer, because with a store the heartbeats call it. After a longer pause the requests are
   * spread evenly, because their times are unknown.
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
