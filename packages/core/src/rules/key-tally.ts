/**
 * Finds the most frequent of very many keys, in bounded memory, with the Space-Saving algorithm (Metwally, Agrawal, El Abbadi 2005,
 * "Efficient computation of frequent and top-k elements in data streams"). If it counts `most` keys, a count is too high by at most a
 * `most`-th of all additions.
 */
export class KeyTally {
  readonly #most: number
  readonly #counts = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  add(key: string): void {
    const count = this.#counts.get(key)
    if (count !== undefined || this.#counts.size < this.#most) {
      this.#counts.set(key, (count ?? 0) + 1)
      return
    }
    let rarest = ''
    let least = Number.POSITIVE_INFINITY
    for (const [other, times] of this.#counts) {
      if (times >= least) continue
      rarest = other
      least = times
    }
    this.#counts.delete(rarest)
    this.#counts.set(key, least + 1)
  }

  /** Lists the most frequent keys first. */
  top(many: number): readonly { readonly key: string; readonly rejected: number }[] {
    return [...this.#counts]
      .map(([key, rejected]) => ({ key, rejected }))
      .sort((a, b) => b.rejected - a.rejected)
      .slice(0, many)
  }
}
