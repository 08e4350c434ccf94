import type { Limiter } from '../decide/limiter.ts'
import type { Emitter } from '../report/events.ts'
import { REFUSALS } from '../report/stats.ts'

/** Shortest time between two `throttled` events of one policy, in milliseconds. */
const EVERY = 1_000

/** Makes `throttled` events out of sums that are kept anyway: it does nothing per refusal, and nothing at all without listeners. */
export class ThrottledReport {
  readonly #emitter: Emitter
  /** The sums when they were last looked at; absent while nobody listened. */
  readonly #before = new Map<Limiter, Float64Array>()
  #at: number | undefined

  constructor(emitter: Emitter) {
    this.#emitter = emitter
  }

  /** Emits what is due. Returns when to call it again, on the monotonic clock. */
  tick(limiters: readonly Limiter[], now: number): number {
    if (!this.#emitter.has('throttled')) {
      this.#at = undefined
      this.#before.clear()
      return Number.POSITIVE_INFINITY
    }
    const at = (this.#at ??= now)
    for (const limiter of limiters) {
      if (!this.#before.has(limiter)) this.#before.set(limiter, limiter.stats.refusals.slice())
    }
    if (now - at < EVERY) return at + EVERY
    this.#at = now
    for (const limiter of limiters) this.#report(limiter, now - at)
    for (const limiter of this.#before.keys()) if (!limiters.includes(limiter)) this.#before.delete(limiter)
    return now + EVERY
  }

  #report(limiter: Limiter, during: number): void {
    const before = this.#before.get(limiter) as Float64Array
    const sums = limiter.stats.refusals
    const reasons: { reason: (typeof REFUSALS)[number]['reason']; source: (typeof REFUSALS)[number]['source']; count: number }[] = []
    let refused = 0
    for (const [i, kind] of REFUSALS.entries()) {
      const count = (sums[i] as number) - (before[i] as number)
      if (count === 0) continue
      refused += count
      reasons.push({ ...kind, count })
    }
    if (refused === 0) return
    before.set(sums)
    this.#emitter.emit('throttled', { policy: limiter.policy.name, refused, during, reasons })
  }
}
