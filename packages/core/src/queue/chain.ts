/** An item of a chain; it can be in one chain at a time. */
export interface Link<T> {
  before: T | undefined
  after: T | undefined
}

/** A line of things in their order, out of which each leaves at once, wherever it stands. */
export class Chain<T extends Link<T>> {
  first: T | undefined
  last: T | undefined

  push(item: T): void {
    this.insert(item, undefined)
  }

  /** Puts it in before another; at the end when that is undefined. */
  insert(item: T, next: T | undefined): void {
    const before = next === undefined ? this.last : next.before
    item.before = before
    item.after = next
    if (before === undefined) this.first = item
    else before.after = item
    if (next === undefined) this.last = item
    else next.before = item
  }

  remove(item: T): void {
    const { before, after } = item
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.last = before
    else after.before = before
    item.before = undefined
    item.after = undefined
  }

  /** Each of two takes the other's place; `later` stands anywhere behind `item`. */
  exchange(item: T, later: T): void {
    const next = later.after
    this.remove(later)
    this.insert(later, item)
    this.remove(item)
    this.insert(item, next)
  }
}
