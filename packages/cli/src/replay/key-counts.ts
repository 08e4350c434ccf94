import { shownKey } from './reader.ts'

/** What came of one key's requests. */
export interface KeyCount {
  readonly key: string
  requests: number
  refused: number
  /** As an exact central count would have refused. */
  exactRefused: number
}

/** Keys that are counted at once. */
const MOST_KEYS = 100_000

/** Counts requests by key, of a bounded number of keys: when there are more, those go of which nothing was refused. */
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
    const count = { key: Buffer.from(key).toString(), requests: 0, refused: 0, exactRefused: 0 }
    this.#keys.set(count.key, count)
    return count
  }

  /** Keys of which something was refused. */
  get refusedKeys(): number {
    let keys = 0
    for (const { refused } of this.#keys.values()) if (refused > 0) keys++
    return keys
  }

  /** The keys of which most was refused, most first. */
  top(most: number): readonly KeyCount[] {
    const refused = [...this.#keys.values()].filter((count) => count.refused > 0 || count.exactRefused > 0)
    const sorted = refused.sort((one, other) => other.refused - one.refused || other.requests - one.requests)
    return sorted.slice(0, most).map((count) => ({ ...count, key: shownKey(count.key) }))
  }

  #drop(): void {
    const before = this.#keys.size
    const kept = [...this.#keys.values()].filter(({ refused, exactRefused }) => refused > 0 || exactRefused > 0)
    // All of them were refused: the half of which more was stays.
    if (kept.length > this.#most / 2) kept.sort((one, other) => other.refused - one.refused).splice(this.#most / 2)
    this.#keys = new Map(kept.map((count) => [count.key, count]))
    this.dropped += before - this.#keys.size
  }
}
