/** Numbers of the newest slots of time, for example of each minute of the last hour. Times are milliseconds of one clock. */
export class Recent {
  /** The running slot first. */
  readonly #values: Float64Array
  readonly #width: number
  #slot = Number.NEGATIVE_INFINITY

  /** @param width milliseconds of one slot */
  constructor(slots: number, width: number) {
    this.#values = new Float64Array(slots + 1)
    this.#width = width
  }

  /** Adds events, spread evenly over the time from `from` to `now`, because their times are unknown. */
  add(events: number, from: number, now: number): void {
    const values = this.#move(now)
    for (let i = 0, start = this.#slot * this.#width; i < values.length; i++, start -= this.#width) {
      const part = now > from ? (Math.min(now, start + this.#width) - Math.max(from, start)) / (now - from) : i === 0 ? 1 : 0
      if (part <= 0) break
      values[i] = (values[i] as number) + events * part
    }
  }

  /** Raises the running slot's number to `value` if it is less. */
  raise(value: number, now: number): void {
    const values = this.#move(now)
    values[0] = Math.max(values[0] as number, value)
  }

  /** The events of as much time as all slots cover. Of the oldest one, which is only partly in it, as large a part counts. */
  sum(now: number): number {
    const values = this.#move(now)
    const last = values.length - 1
    const part = 1 - (now / this.#width - this.#slot)
    return values.reduce((sum, value, i) => sum + (i === last ? value * part : value), 0)
  }

  /** The highest number of the slots. */
  max(now: number): number {
    return Math.max(...this.#move(now))
  }

  #move(now: number): Float64Array {
    const slot = Math.floor(now / this.#width)
    const over = Math.min(slot - this.#slot, this.#values.length)
    if (over > 0) {
      this.#values.copyWithin(over, 0).fill(0, 0, over)
      this.#slot = slot
    }
    return this.#values
  }
}
