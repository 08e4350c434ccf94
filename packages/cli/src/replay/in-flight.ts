/** Compares the requests in flight that a cluster allows for each key with their limit. */
export class InFlight {
  readonly #limit: number
  readonly #most: number
  readonly #held = new Map<string, number>()
  #allowed = 0
  #exact = 0
  /** Units allowed while the limit was already in flight. */
  beyond = 0
  /** The largest overshoot of one key at one moment, as a part of the limit. */
  worst = 0

  /** @param most maximum number of keys with requests in flight to compare */
  constructor(limit: number, most: number) {
    this.#limit = limit
    this.#most = most
  }

  /** Units that the exact count allowed, minus the units that the cluster allowed. At least 0. */
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

  /** Frees the units of requests that have ended. */
  release(key: string, units: number, by: 'cluster' | 'exact'): void {
    const held = by === 'exact' ? undefined : this.#held.get(key)
    if (held === undefined) return
    if (held > units) this.#held.set(key, held - units)
    else this.#held.delete(key)
  }

  /** Forgets the requests in flight, at the end of the log. */
  close(): void {
    this.#held.clear()
  }
}
