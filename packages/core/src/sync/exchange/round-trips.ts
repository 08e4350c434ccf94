/** So many round trips say what is usual. */
const REMEMBERED = 15

/**
 * How long a store takes to answer as a rule: the median of its last round trips, in milliseconds. Unlike with a mean, a
 * few late answers change nothing, and a store that has become slow, or has moved away, counts as such after eight of them.
 */
export class RoundTrips {
  readonly #last: number[] = []
  /** The same, the shortest first: put in order one by one, since a copy to sort costs more than the rest of an exchange. */
  readonly #sorted: number[] = []
  #next = 0

  /** 0 before the first answer. */
  get usual(): number {
    return this.#sorted[this.#sorted.length >> 1] ?? 0
  }

  add(took: number): void {
    const sorted = this.#sorted
    const old = this.#last[this.#next]
    let place = old === undefined ? sorted.length : sorted.indexOf(old)
    for (; place > 0 && (sorted[place - 1] as number) > took; place--) sorted[place] = sorted[place - 1] as number
    for (; (sorted[place + 1] as number) < took; place++) sorted[place] = sorted[place + 1] as number
    sorted[place] = took
    this.#last[this.#next] = took
    this.#next = (this.#next + 1) % REMEMBERED
  }
}
