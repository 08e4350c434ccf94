import type { Clock, TimerHandle } from '../time/clock.ts'

/** What waits, in the order in which it will have waited long enough. */
interface Line<T> {
  readonly items: { readonly item: T; readonly at: number }[]
  /** Items before it are over. */
  from: number
}

/** Calls a function with each item some time after it was added. One timer for all, which is set once in the shortest of the times. */
export class Deadlines<T extends { readonly settled: boolean }> {
  readonly #clock: Clock
  readonly #expire: (item: T) => void
  readonly #lines = new Map<number, Line<T>>()
  #timer: TimerHandle | undefined
  #timerAt = Number.POSITIVE_INFINITY

  /** @param expire is not called with items that are settled by then */
  constructor(clock: Clock, expire: (item: T) => void) {
    this.#clock = clock
    this.#expire = expire
  }

  /** @param after milliseconds */
  add(item: T, after: number, now: number): void {
    let line = this.#lines.get(after)
    if (line === undefined) this.#lines.set(after, (line = { items: [], from: 0 }))
    const at = now + after
    line.items.push({ item, at })
    if (at < this.#timerAt) this.#wake(at, now)
  }

  /** Nothing is waited for any more: what is not settled is over now. */
  close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    this.#timerAt = Number.POSITIVE_INFINITY
    for (const line of this.#lines.values()) this.#end(line, Number.POSITIVE_INFINITY)
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
    for (const line of this.#lines.values()) next = Math.min(next, this.#end(line, now))
    if (next < this.#timerAt) this.#wake(next, this.#clock.monotonic())
  }

  /** Ends what is over; returns when the next one will be. */
  #end(line: Line<T>, now: number): number {
    const { items } = line
    for (; line.from < items.length; line.from++) {
      const { item, at } = items[line.from] as { readonly item: T; readonly at: number }
      if (item.settled) continue
      // Timers count whole milliseconds.
      if (at > now + 0.5) break
      this.#expire(item)
    }
    const next = items[line.from]?.at ?? Number.POSITIVE_INFINITY
    items.splice(0, line.from)
    line.from = 0
    return next
  }
}
