import { copied } from './key-text.ts'

/**
 * A bounded memory of recent results, so that the common case is one look-up.
 *
 * It has two maps. A full `young` map becomes the `old` one, and all entries of the previous old map are forgotten at once. An entry that
 * is read again moves back to the young map. So there are at most twice `capacity` entries, without a scan or a timer. Keys are copied,
 * because they may be parts of long strings. Values must own all memory that they refer to.
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
