import type { Clock, TimerHandle } from './clock.ts'

/**
 * Items that expire in one turn of the event loop. Usually that is all, but if a store hangs for many requests, other work must get its
 * turn.
 */
const SLICE = 1000
/** Lines that may be empty. */
const FEW = 100

/** An item with a timeout, and its neighbours with the same timeout. */
export interface Awaited {
  /** End of its wait, on the monotonic clock. */
  endsAt: number
  /** The neighbours that expire before and after it. */
  earlier: this | undefined
  later: this | undefined
  /** The line that contains it. Undefined when it no longer waits. */
  line: Line<this> | undefined
}

/** Items with the same timeout, in the order in which they expire. */
export interface Line<T> {
  first: T | undefined
  last: T | undefined
}

/**
 * Calls a function with each item some time after it was added, unless it was removed before. All items share one timer, which is set once
 * in the shortest of the timeouts. Removed items are released immediately, because most are removed soon.
 */
export class Timeouts<T extends Awaited> {
  readonly #clock: Clock
  readonly #expire: (item: T) => void
  readonly #lines = new Map<number, Line<T>>()
  #timer: TimerHandle | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #size = 0

  constructor(clock: Clock, expire: (item: T) => void) {
    this.#clock = clock
    this.#expire = expire
  }

  /** The number of items that wait. */
  get size(): number {
    return this.#size
  }

  /** The item that expires next. */
  get next(): T | undefined {
    let next: T | undefined
    for (const { first } of this.#lines.values()) if (first !== undefined && !(first.endsAt >= (next?.endsAt ?? Infinity))) next = first
    return next
  }

  /** @param after milliseconds */
  add(item: T, after: number, now: number): void {
    let line = this.#lines.get(after)
    if (line === undefined) {
      // Each item may have a timeout of its own, and most are removed before it.
      if (this.#lines.size > FEW + 2 * this.#size)
        for (const [other, { first }] of this.#lines) if (first === undefined) this.#lines.delete(other)
      this.#lines.set(after, (line = { first: undefined, last: undefined }))
    }
    const { last } = line
    item.endsAt = now + after
    item.line = line
    item.earlier = last
    if (last === undefined) line.first = item
    else last.later = item
    line.last = item
    this.#size++
    if (item.endsAt < this.#timerAt) this.#wake(item.endsAt, now)
  }

  remove(item: T): void {
    const { line, earlier, later } = item
    if (line === undefined) return
    this.#size--
    if (earlier === undefined) line.first = later
    else earlier.later = later
    if (later === undefined) line.last = earlier
    else later.earlier = earlier
    item.line = item.earlier = item.later = undefined
  }

  /** Expires all items now. */
  close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerAt = Number.POSITIVE_INFINITY
    for (const line of this.#lines.values()) this.#end(line, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  }

  #wake(at: number, now: number): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = this.#clock.setTimeout(() => this.#tick(), Math.max(0, at - now))
  }

  #tick(): void {
    this.#timer = undefined
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.#clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    let most = SLICE
    for (const [after, line] of this.#lines) {
      most = this.#end(line, now, most)
      if (line.first === undefined) this.#lines.delete(after)
      else next = Math.min(next, line.first.endsAt)
    }
    if (next < this.#timerAt) this.#wake(next, this.#clock.monotonic())
  }

  /** Expires the items that are due. Returns how many more may expire. */
  #end(line: Line<T>, now: number, most: number): number {
    let left = most
    // Timers count whole milliseconds.
    for (let item = line.first; item !== undefined && left > 0 && item.endsAt <= now + 0.5; item = line.first) {
      left--
      this.remove(item)
      this.#expire(item)
    }
    return left
  }
}
