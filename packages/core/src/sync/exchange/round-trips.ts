/** So many round trips say what is usual. */
const REMEMBERED = 15

/**
 * How long a store takes to answer as a rule: the median of its last round trips, in milliseconds. Unlike with a mean, a
 * few late answers change nothing, and a store that has become slow, or has moved away, counts as such after eight of them.
 */
export class RoundTrips {
  readonly #last: number[] = []
  #next = 0
  #usual = 0

  /** 0 before the first answer. */
  get usual(): number {
    return this.#usual
  }

  add(took: number): void {
    this.#last[this.#next] = took
    this.#next = (this.#next + 1) % REMEMBERED
    const sorted = new Float64Array(this.#last).sort()
    this.#usual = sorted[sorted.length >> 1] as number
  }
}
