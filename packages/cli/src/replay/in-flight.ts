/** Holds the requests in flight that a cluster allows of each key against their limit. */
export class InFlight {
  readonly #limit: number
  readonly #most: number
  readonly #held = new Map<string, number>()
  #allowed = 0
  #exact = 0
  /** Units allowed while as many as may be were in flight. */
  beyond = 0
  /** The most units beyond the limit, of one key at one moment, as a part of the limit. */
  worst = 0

  /** @param most keys with requests in flight that are compared */
  constructor(limit: number, most: number) {
    this.#limit = limit
    this.#most = most
  }

  /** Units rejected that an exact count allows, on balance. */
  get missed(): number {
    return Math.max(0, this.#exact - this.#allowed)
  }

  add(key: string, _time: number, units: number, by: 'cluster' | 'exact'): void {
    if (by === 'exact') {
      this.#exact += units
      return
    }
    this.#allowed += units
    const before = this.#held.get(key)
    if (before === undefined && this.#held.size >= this.#most) return
    const held = (before ?? 0) + units
    this.#held.set(key, held)
    const beyond = held - this.#limit
    if (beyond <= 0) return
    this.beyond += Math.min(units, beyond)
    this.worst = Math.max(this.worst, beyond / this.#limit)
  }

  /** Requests have ended. */
  release(key: string, units: number, by: 'cluster' | 'exact'): void {
    const held = by === 'exact' ? undefined : this.#held.get(key)
    if (held === undefined) return
    if (held > units) this.#held.set(key, held - units)
    else this.#held.delete(key)
  }

  /** The log is over. */
  close(): void {
    this.#held.clear()
  }
}
