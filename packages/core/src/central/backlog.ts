import type { Clock } from '../time/clock.ts'

/** Reports that are kept for the store. The oldest is dropped. */
const MOST = 10_000
/** Reports beyond which expired ones are searched for, and the part by which their number must grow before the next search. */
const FEW = 100
const MORE = 1 / 4
/** Reports that are sent together. The next ones follow when these are answered: more would block the event loop and flood the store. */
const SLICE = 500
/** Milliseconds after which a slice no longer waits for its answers. */
export const PATIENCE = 1_000

/** Reports that were sent together and are not all answered yet. */
export interface Slice {
  left: number
}

/** The methods that a backlog needs of its link. `T` is a report. */
export interface BacklogHost<T> {
  /** Whether something can be sent. */
  readonly open: boolean
  /** Whether a reply of the store is overdue. */
  readonly overdue: boolean
  /** Sends a report. `Backlog.ended` is called with the slice when it was answered, or has failed. */
  send(item: T, slice: Slice, now: number): void
  /** Sends up to `most` reports that are kept elsewhere. Returns how many. */
  sendOthers(most: number, slice: Slice, now: number): number
  /** Whether a report has no effect on the store any more. */
  isOver(item: T, now: number): boolean
  /** A report is not sent, because it has no effect any more or there are too many. */
  drop(item: T): void
}

/** Reports that the store may have missed, in their order. They are sent slice by slice, before anything else. */
export class Backlog<T> {
  readonly #clock: Clock
  readonly #host: BacklogHost<T>
  readonly #items = new Set<T>()
  #slice: Slice | undefined
  #sweepAt = FEW
  /** Whether there are reports to send, so that nothing else may be sent before. */
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

  /** The report is no longer needed. */
  delete(item: T): void {
    this.#items.delete(item)
  }

  /**
   * Sends the next slice. Afterwards `pending` shows whether reports are left.
   *
   * @param probe whether to try it although a reply of the store is overdue
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

  /** A report of a slice was answered, or has failed. */
  ended(slice: Slice): void {
    if (--slice.left === 0) this.#endSlice(slice)
  }

  #endSlice(slice: Slice): void {
    if (this.#slice !== slice) return
    this.#slice = undefined
    this.tell(this.#clock.monotonic())
  }
}
