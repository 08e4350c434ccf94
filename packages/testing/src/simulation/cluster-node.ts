import type { NodeClock } from '../time/manual-clock.ts'
import type { NodeDecision, SimulatedNode } from './scenario.ts'

/** One in this many requests that could be skipped is checked all the same. */
const AUDIT = 64

/**
 * A process of the simulated cluster, with a shortcut for keys that it rejects. Its answers change only with an event (a timer, a
 * reply, an announcement, a step of its clock), an allowed request, or time. Between events, and well before `retryAfterMs` has
 * passed, a rejected key stays rejected.
 */
export class ClusterNode {
  readonly place: number
  readonly clock: NodeClock
  readonly limiter: SimulatedNode
  readonly #shortcut: boolean
  /** The virtual time until which a key need not be checked. */
  readonly #closed = new Map<string, number>()
  #events = 0
  #skipped = 0

  constructor(place: number, clock: NodeClock, limiter: SimulatedNode, shortcut: boolean) {
    this.place = place
    this.clock = clock
    this.limiter = limiter
    this.#shortcut = shortcut
  }

  /** Whether the key is certainly rejected, so that no check is needed. */
  rejects(key: string, cost: number, now: number): boolean {
    if (!this.#shortcut) return false
    if (this.clock.events !== this.#events) {
      this.#events = this.clock.events
      this.#closed.clear()
      return false
    }
    const until = this.#closed.get(key)
    if (until === undefined || now >= until || cost < 1) return false
    return ++this.#skipped % AUDIT !== 0
  }

  /** Records the answer to a request. */
  answered(key: string, cost: number, now: number, { allowed, reason, retryAfterMs }: NodeDecision): void {
    if (!this.#shortcut) return
    // Only a rejection of the smallest request is valid for other requests. While the store is down, decisions and their
    // `retryAfterMs` are estimates.
    if (!allowed && cost <= 1 && reason !== 'storeDown') {
      // A throttler rounds times up to whole milliseconds.
      this.#closed.set(key, now + (retryAfterMs - 1) / 2)
      return
    }
    if (allowed && cost >= 1 && this.#closed.size > 0) {
      const until = this.#closed.get(key)
      if (until !== undefined && now < until && this.clock.events === this.#events) {
        throw new Error(
          `Process ${this.place} allowed "${key}" at ${now}, although it had rejected the key until ${until} and nothing changed since.`,
        )
      }
    }
  }
}
