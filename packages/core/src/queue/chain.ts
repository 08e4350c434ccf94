/** An item of a chain. It can be in one chain at a time. */
export interface Link<T> {
  before: T | undefined
  after: T | undefined
}

/** A linked list. Removing an item takes the same time at each position. */
export class Chain<T extends Link<T>> {
  first: T | undefined
  last: T | undefined

  push(item: T): void {
    this.insert(item, undefined)
  }

  /** Inserts an item before another one, or at the end if `next` is undefined. */
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
}
