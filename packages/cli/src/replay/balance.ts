import type { Policy } from '@weir/core'

interface Units {
  cluster: number
  exact: number
}

/**
 * Compares the units that a cluster allows for each key and interval with the units that an exact central count allows for the same
 * requests. Keeps only the current interval. Intervals follow the epoch or the policy's calendar, for every algorithm.
 */
export class Balance {
  readonly #policy: Policy
  readonly #most: number
  #keys = new Map<string, Units>()
  #end = Number.NEGATIVE_INFINITY
  /** Units allowed that the exact count rejects. */
  beyond = 0
  /** Units rejected that the exact count allows. */
  missed = 0
  /** The largest overshoot of one key in one interval, as a part of the limit. */
  worst = 0

  /** @param most maximum number of keys to compare in one interval */
  constructor(policy: Policy, most: number) {
    this.#policy = policy
    this.#most = most
  }

  /** @param time milliseconds since the epoch, not earlier than in previous calls */
  add(key: string, time: number, units: number, by: keyof Units): void {
    if (time >= this.#end) this.#roll(time)
    const known = this.#keys.get(key)
    if (known !== undefined) known[by] += units
    else if (this.#keys.size < this.#most) {
      const first: Units = { cluster: 0, exact: 0 }
      first[by] = units
      this.#keys.set(key, first)
    }
  }

  /** Ends the current interval. */
  close(): void {
    for (const { cluster, exact } of this.#keys.values()) {
      const beyond = cluster - exact
      if (beyond < 0) this.missed -= beyond
      else if (beyond > 0) {
        this.beyond += beyond
        this.worst = Math.max(this.worst, beyond / this.#policy.limit)
      }
    }
    this.#keys = new Map()
    this.#end = Number.NEGATIVE_INFINITY
  }

  #roll(time: number): void {
    this.close()
    const { calendar, interval } = this.#policy
    this.#end = calendar?.at(time).end ?? (Math.floor(time / interval) + 1) * interval
  }
}
