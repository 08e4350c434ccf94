import { smooth } from '../estimate.ts'

/** A bucket that holds less than nothing is as good as empty. */
const LEAST = Number.NEGATIVE_INFINITY

/**
 * What is likely to be in a key's bucket, from what the store said last and the pace of the others until then. It times exchanges,
 * and never rejects. Times are of the monotonic clock, rates are units per millisecond.
 */
export class Forecast {
  /** What others allow. */
  #rate = 0
  /** What was known at `#at`, own units since included. */
  #level = 0
  #at: number = LEAST
  /** Others' rate counts from here on: nobody allows while the key is closed. */
  #from: number = LEAST
  #total = 0
  #sentAt: number = LEAST

  /** This node has allowed units. */
  add(units: number): void {
    this.#level += units
  }

  /** The level is known anew. */
  learn(level: number, now: number): void {
    this.#level = level
    this.#at = now
    this.#from = Math.max(this.#from, now)
  }

  /** Nobody allows until then, as far as known. */
  close(until: number): void {
    this.#from = Math.max(this.#from, until)
  }

  /**
   * The store has answered.
   *
   * @param total - units of all nodes that it has heard of
   * @param own - this node's among those that are new to it
   * @param sent - when it was asked
   */
  answered(total: number, own: number, sent: number): void {
    const elapsed = sent - this.#sentAt
    if (elapsed > 0 && elapsed < Number.POSITIVE_INFINITY) this.#rate = smooth(this.#rate, Math.max(0, total - this.#total - own) / elapsed)
    this.#total = total
    this.#sentAt = sent
  }

  /**
   * Units that others are expected to have allowed since the level was known.
   *
   * @param most - their rate at most
   */
  others(now: number, most: number = Number.POSITIVE_INFINITY): number {
    const rate = Math.min(this.#rate, most)
    return rate === 0 ? 0 : rate * Math.max(0, now - this.#from)
  }

  /** The level as it would be without those: less than 0 where more could have run out than there was. */
  bare(now: number, drain: number): number {
    return this.#at === LEAST ? 0 : this.#level - (now - this.#at) * drain
  }
}
