import type { Clock } from '../time/clock.ts'

/** What the store has to be told is kept for so many requests; the oldest goes. */
const MOST = 10_000
/** Those that are over are looked for when there are more than this, and again when there are this part more. */
const FEW = 100
const MORE = 1 / 4
/** So many of them are sent at once, and the next ones when these are answered: more would hold the event loop, and flood the store. */
const SLICE = 500
/** Milliseconds after which answers are waited for no longer. */
export const PATIENCE = 1_000

/** Requests that were sent together and are not all answered yet. */
export interface Slice {
  left: number
}

/** What a backlog needs of the link that it belongs to. `T` is what is told. */
export interface BacklogHost<T> {
  /** Whether something can be sent. */
  readonly open: boolean
  /** Whether the store owes an answer for too long. */
  readonly overdue: boolean
  /** Sends one; `Backlog.ended` is called with the slice when it was answered, or has failed. */
  send(item: T, slice: Slice, now: number): void
  /** Sends as many others as that at most, which are kept elsewhere; returns how many it were. */
  sendOthers(most: number, slice: Slice, now: number): number
  /** Whether the store need no longer be told of one. */
  isOver(item: T, now: number): boolean
  /** One is not told, as it is over or there are too many. */
  drop(item: T): void
}

/** What the store may not have heard, in the order in which it was to. It is told slice by slice, before anything else. */
export class Backlog<T> {
  readonly #clock: Clock
  readonly #host: BacklogHost<T>
  readonly #items = new Set<T>()
  #slice: Slice | undefined
  #sweepAt = FEW
  /** Whether the store is still to be told of something, so that nothing else may be sent before. */
  pending = false

  constructor(clock: Clock, host: BacklogHost<T>) {
    this.#clock = clock
    this.#host = host
  }

  keep(item: T): void {
    this.pending = true
    this.#items.add(item)
    if (this.#items.size > this.#sweepAt) this.#sweep()
    if (this.#items.size > MOST) this.#drop(this.#items.values().next().value as T)
  }

  #sweep(): void {
    const now = this.#clock.monotonic()
    for (const item of this.#items) if (this.#host.isOver(item, now)) this.#drop(item)
    this.#sweepAt = Math.max(FEW, (1 + MORE) * this.#items.size)
  }

  #drop(item: T): void {
    this.#items.delete(item)
    this.#host.drop(item)
  }

  /** Whether it was not sent yet. */
  has(item: T): boolean {
    return this.#items.has(item)
  }

  /** Need not be told any more. */
  delete(item: T): void {
    this.#items.delete(item)
  }

  /**
   * Goes on with telling; afterwards `pending` says whether something is left.
   *
   * @param probe whether to try it although the store owes an answer
   */
  tell(now: number, probe = false): void {
    if (this.#slice !== undefined || !this.#host.open || (this.#host.overdue && !probe)) return
    const slice: Slice = { left: 0 }
    this.#slice = slice
    let most = SLICE
    for (const item of this.#items) {
      if (most === 0) break
      most--
      slice.left++
      this.#items.delete(item)
      this.#host.send(item, slice, now)
    }
    if (most > 0) {
      const others = this.#host.sendOthers(most, slice, now)
      most -= others
      slice.left += others
    }
    this.pending = most === 0
    if (this.pending) this.#clock.setTimeout(() => this.#endSlice(slice), PATIENCE)
    else this.#slice = undefined
  }

  /** One of a slice was answered, or has failed. */
  ended(slice: Slice): void {
    if (--slice.left === 0) this.#endSlice(slice)
  }

  #endSlice(slice: Slice): void {
    if (this.#slice !== slice) return
    this.#slice = undefined
    this.tell(this.#clock.monotonic())
  }
}
