import { shownKey } from './reader.ts'

/** Counts of one key's requests. */
export interface KeyCount {
  readonly key: string
  requests: number
  rejected: number
  /** Requests that an exact central count would have rejected. */
  exactRejected: number
}

/** The most keys that are counted at once. */
const MOST_KEYS = 100_000

/** Counts requests by key, for a bounded number of keys. If there are more, keys without a rejection are dropped. */
export class KeyCounts {
  readonly #most: number
  #keys = new Map<string, KeyCount>()
  /** Dropped keys. If such a key returns, its earlier requests are missing in its count. */
  dropped = 0

  constructor(most: number = MOST_KEYS) {
    this.#most = most
  }

  of(key: string): KeyCount {
    const known = this.#keys.get(key)
    if (known !== undefined) return known
    if (this.#keys.size >= this.#most) this.#drop()
    // Copies the text, because a substring keeps the whole piece of the log in memory.
    const count = { key: Buffer.from(key).toString(), requests: 0, rejected: 0, exactRejected: 0 }
    this.#keys.set(count.key, count)
    return count
  }

  /** All keys. Keys that were dropped count again if they return. */
  get size(): number {
    return this.#keys.size + this.dropped
  }

  /** Keys with at least one rejected request. */
  get rejectedKeys(): number {
    let keys = 0
    for (const { rejected } of this.#keys.values()) if (rejected > 0) keys++
    return keys
  }

  /** The keys with the most rejected requests, most first. */
  top(most: number): readonly KeyCount[] {
    const rejected = [...this.#keys.values()].filter((count) => count.rejected > 0 || count.exactRejected > 0)
    const sorted = rejected.sort((one, other) => other.rejected - one.rejected || other.requests - one.requests)
    return sorted.slice(0, most).map((count) => ({ ...count, key: shownKey(count.key) }))
  }

  #drop(): void {
    const before = this.#keys.size
    const kept = [...this.#keys.values()].filter(({ rejected, exactRejected }) => rejected > 0 || exactRejected > 0)
    // If more than half of the keys had rejections, the half with the most stays.
    if (kept.length > this.#most / 2) kept.sort((one, other) => other.rejected - one.rejected).splice(this.#most / 2)
    this.#keys = new Map(kept.map((count) => [count.key, count]))
    this.dropped += before - this.#keys.size
  }
}
