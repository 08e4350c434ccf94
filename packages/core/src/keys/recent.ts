import { copied } from './key-text.ts'

/**
 * A bounded memory of what was worked out lately, so that the common case is one look-up.
 *
 * Two maps: a full `young` becomes the `old` one, and what the old one held is forgotten in bulk. An entry that is asked
 * for again moves back to the young one. Holds at most twice `capacity` entries, without a scan or a timer. Keys are copied out of
 * what they are a part of; values must own what they hold.
 */
export class Recent<Value> {
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()
  readonly #capacity: number

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: string, value: Value): void {
    if (this.#young.size >= this.#capacity) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(copied(key), value)
  }
}
