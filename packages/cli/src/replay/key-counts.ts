import { shownKey } from './reader.ts'

/** Counts of one key's requests. */
export interface KeyCount {
  readonly key: string
  requests: number
  rejected: number
  /** As an exact central count would have rejected. */
  exactRejected: number
}

/** Keys that are counted at once. */
const MOST_KEYS = 100_000

/** Counts requests by key, of a bounded number of keys: when there are more, those go of which nothing was rejected. */
export class KeyCounts {
  readonly #most: number
  #keys = new Map<string, KeyCount>()
  /** Keys that were let go of: what they had is not in their counts if they come again. */
  dropped = 0

  constructor(most: number = MOST_KEYS) {
    this.#most = most
  }

  of(key: string): KeyCount {
    const known = this.#keys.get(key)
    if (known !== undefined) return known
    if (this.#keys.size >= this.#most) this.#drop()
    // Copied: a part of a line would keep all that was read with it.
    const count = { key: Buffer.from(key).toString(), requests: 0, rejected: 0, exactRejected: 0 }
    this.#keys.set(count.key, count)
    return count
  }

  /** Keys of which something was rejected. */
  get rejectedKeys(): number {
    let keys = 0
    for (const { rejected } of this.#keys.values()) if (rejected > 0) keys++
    return keys
  }

  /** The keys of which most was rejected, most first. */
  top(most: number): readonly KeyCount[] {
    const rejected = [...this.#keys.values()].filter((count) => count.rejected > 0 || count.exactRejected > 0)
    const sorted = rejected.sort((one, other) => other.rejected - one.rejected || other.requests - one.requests)
    return sorted.slice(0, most).map((count) => ({ ...count, key: shownKey(count.key) }))
  }

  #drop(): void {
    const before = this.#keys.size
    const kept = [...this.#keys.values()].filter(({ rejected, exactRejected }) => rejected > 0 || exactRejected > 0)
    // All of them were rejected: the half of which more was stays.
    if (kept.length > this.#most / 2) kept.sort((one, other) => other.rejected - one.rejected).splice(this.#most / 2)
    this.#keys = new Map(kept.map((count) => [count.key, count]))
    this.dropped += before - this.#keys.size
  }
}
