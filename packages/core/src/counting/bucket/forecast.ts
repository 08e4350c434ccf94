import { smooth } from '../estimate.ts'

/** A bucket with less than nothing counts as empty. */
const LEAST = Number.NEGATIVE_INFINITY

/**
 * The likely level of a key's bucket, from the store's last answer and the others' pace until then. It decides when to sync, and never
 * rejects. Times are of the monotonic clock, rates are units per millisecond.
 */
export class Forecast {
  /** The others' allowed units. */
  #rate = 0
  /** The level at `#at`, own units since included. */
  #level = 0
  #at: number = LEAST
  /** The others' rate counts from here on: no process allows requests while the key is closed. */
  #from: number = LEAST
  #total = 0
  #sentAt: number = LEAST

  /** This process has allowed units. */
  add(units: number): void {
    this.#level += units
  }

  /** Takes over a new level. */
  learn(level: number, now: number): void {
    this.#level = level
    this.#at = now
    this.#from = Math.max(this.#from, now)
  }

  /** All processes probably reject until then. */
  close(until: number): void {
    this.#from = Math.max(this.#from, until)
  }

  /**
   * The store has answered.
   *
   * @param total - units of all processes that it has received
   * @param own - units of this process that are new to the store
   * @param sent - when the sync was sent
   */
  answered(total: number, own: number, sent: number): void {
    const elapsed = sent - this.#sentAt
    if (elapsed > 0 && elapsed < Number.POSITIVE_INFINITY) this.#rate = smooth(this.#rate, Math.max(0, total - this.#total - own) / elapsed)
    this.#total = total
    this.#sentAt = sent
  }

  /**
   * Units that others have probably allowed since the level was received.
   *
   * @param most - their rate at most
   */
  others(now: number, most: number = Number.POSITIVE_INFINITY): number {
    const rate = Math.min(this.#rate, most)
    return rate === 0 ? 0 : rate * Math.max(0, now - this.#from)
  }

  /** The level without them: negative if more units could have drained than there were. */
  bare(now: number, drain: number): number {
    return this.#at === LEAST ? 0 : this.#level - (now - this.#at) * drain
  }
}
