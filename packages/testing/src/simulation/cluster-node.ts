import type { NodeClock } from '../time/manual-clock.ts'
import type { NodeDecision, SimulatedNode } from './scenario.ts'

/** One in so many requests that would be skipped is asked all the same. */
const AUDIT = 64

/**
 * A node of the simulated cluster, and the shortcut for keys that it rejects: what a node answers changes with an
 * event (a timer, a reply, an announcement, a step of its clock), an allowed request, or time. Between events, and
 * well before the time that it told to wait is over, a rejected key stays rejected.
 */
export class ClusterNode {
  readonly place: number
  readonly clock: NodeClock
  readonly limiter: SimulatedNode
  readonly #shortcut: boolean
  /** Until when a key need not be asked for, in virtual time. */
  readonly #closed = new Map<string, number>()
  #events = 0
  #skipped = 0

  constructor(place: number, clock: NodeClock, limiter: SimulatedNode, shortcut: boolean) {
    this.place = place
    this.clock = clock
    this.limiter = limiter
    this.#shortcut = shortcut
  }

  /** Whether the answer is known to be no without asking. */
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

  /** Takes note of an answer to a request. */
  answered(key: string, cost: number, now: number, { allowed, reason, retryAfterMs }: NodeDecision): void {
    if (!this.#shortcut) return
    // Only what would reject the least request says something about others. And what a node does while the store is
    // away rests on estimates, as does the time that it tells to wait.
    if (!allowed && cost <= 1 && reason !== 'storeDown') {
      // A throttler tells whole milliseconds, rounded up.
      this.#closed.set(key, now + (retryAfterMs - 1) / 2)
      return
    }
    if (allowed && cost >= 1 && this.#closed.size > 0) {
      const until = this.#closed.get(key)
      if (until !== undefined && now < until && this.clock.events === this.#events) {
        throw new Error(
          `Node ${this.place} allowed "${key}" at ${now}, though it had rejected it until ${until} and nothing happened since.`,
        )
      }
    }
  }
}
