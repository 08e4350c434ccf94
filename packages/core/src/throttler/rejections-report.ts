import type { Limiter } from '../decide/limiter.ts'
import type { Emitter } from '../report/events.ts'
import { REJECTIONS } from '../report/stats.ts'

/** Shortest time between two `rejections` events of one policy, in milliseconds. */
const EVERY = 1_000

/** Makes `rejections` events from sums that exist anyway: no work per rejection, and none at all without listeners. */
export class RejectionsReport {
  readonly #emitter: Emitter
  /** The sums at the last report. Absent while there are no listeners. */
  readonly #before = new Map<Limiter, Float64Array>()
  #at: number | undefined

  constructor(emitter: Emitter) {
    this.#emitter = emitter
  }

  /** Emits the due events. Returns when to call it again, on the monotonic clock. */
  tick(limiters: readonly Limiter[], now: number): number {
    if (!this.#emitter.has('rejections')) {
      this.#at = undefined
      this.#before.clear()
      return Number.POSITIVE_INFINITY
    }
    const at = (this.#at ??= now)
    for (const limiter of limiters) {
      if (!this.#before.has(limiter)) this.#before.set(limiter, limiter.stats.rejections.slice())
    }
    if (now - at < EVERY) return at + EVERY
    this.#at = now
    for (const limiter of limiters) this.#report(limiter, now - at)
    for (const limiter of this.#before.keys()) if (!limiters.includes(limiter)) this.#before.delete(limiter)
    return now + EVERY
  }

  #report(limiter: Limiter, durationMs: number): void {
    const before = this.#before.get(limiter) as Float64Array
    const sums = limiter.stats.rejections
    const reasons: { reason: (typeof REJECTIONS)[number]['reason']; source: (typeof REJECTIONS)[number]['source']; count: number }[] = []
    let rejected = 0
    for (const [i, kind] of REJECTIONS.entries()) {
      const count = (sums[i] as number) - (before[i] as number)
      if (count === 0) continue
      rejected += count
      reasons.push({ ...kind, count })
    }
    if (rejected === 0) return
    before.set(sums)
    this.#emitter.emit('rejections', { policy: limiter.policy.name, rejected, durationMs, reasons })
  }
}
