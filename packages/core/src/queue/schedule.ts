/** An item with a time at which something happens to it. */
export interface Timed {
  /** Milliseconds of the monotonic clock. */
  at: number
  /** Its index in the heap, or -1 outside a schedule. */
  place: number
  /** The order of items at the same time: the smallest comes first. */
  readonly number: number
}

function isSooner(a: Timed, b: Timed): boolean {
  return a.at < b.at || (a.at === b.at && a.number < b.number)
}

/** Items by their time, soonest first. A binary heap that stores each item's index in the item, so that any item can be removed. */
export class Schedule<T extends Timed> {
  readonly #items: T[] = []

  /** The item with the soonest time. */
  get first(): T | undefined {
    return this.#items[0]
  }

  /** All items, in no order. */
  get items(): readonly T[] {
    return this.#items
  }

  /** Adds an item, or moves it to another time. */
  set(item: T, at: number): void {
    item.at = at
    if (item.place < 0) item.place = this.#items.push(item) - 1
    this.#settle(item)
  }

  remove(item: T): void {
    const { place } = item
    if (place < 0) return
    const last = this.#items.pop() as T
    item.place = -1
    if (last === item) return
    this.#put(last, place)
    this.#settle(last)
  }

  #settle(item: T): void {
    const items = this.#items
    let { place } = item
    while (place > 0) {
      const up = (place - 1) >> 1
      const above = items[up] as T
      if (!isSooner(item, above)) break
      this.#put(above, place)
      place = up
    }
    for (;;) {
      let down = 2 * place + 1
      if (down >= items.length) break
      if (down + 1 < items.length && isSooner(items[down + 1] as T, items[down] as T)) down++
      const below = items[down] as T
      if (!isSooner(below, item)) break
      this.#put(below, place)
      place = down
    }
    this.#put(item, place)
  }

  #put(item: T, place: number): void {
    this.#items[place] = item
    item.place = place
  }
}
