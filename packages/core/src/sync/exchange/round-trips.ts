/** The number of round trips that define the usual time. */
const REMEMBERED = 15

/**
 * The usual time of a store's answer: the median of its last round trips, in milliseconds. Unlike a mean, it ignores a few late answers,
 * and it follows a store that has become slow, or has moved far away, after eight of them.
 */
export class RoundTrips {
  readonly #last: number[] = []
  /** The same round trips in ascending order. Each is inserted, because sorting a copy costs more than the rest of a sync. */
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
