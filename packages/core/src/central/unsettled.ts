/**
 * Reports, and requests that were decided without the store, whose effect on the store is still unknown. A flush waits only for those that
 * are older than itself, because in a busy process some are always under way.
 */
export class Unsettled<T> {
  /** Each with the number of flushes before it. */
  readonly #items = new Map<T, number>()
  #flushes = 0
  /** The number for all that are added now. Infinity for the number of flushes so far. */
  #before = Number.POSITIVE_INFINITY

  add(item: T): void {
    this.#items.set(item, Math.min(this.#before, this.#flushes))
  }

  delete(item: T): void {
    this.#items.delete(item)
  }

  /** Everything that `run` adds counts as old as the oldest of the items. Without items it is older than all flushes. */
  inPlaceOf<R>(items: readonly T[], run: () => R): R {
    const before = this.#before
    const ages = items.map((item) => this.#items.get(item) ?? Number.POSITIVE_INFINITY)
    this.#before = items.length === 0 ? 0 : Math.min(before, ...ages)
    try {
      return run()
    } finally {
      this.#before = before
    }
  }

  /** Begins a flush. The returned function returns whether everything has settled that was added before. */
  flush(): () => boolean {
    const number = this.#flushes++
    return () => {
      for (const before of this.#items.values()) if (before <= number) return false
      return true
    }
  }
}
