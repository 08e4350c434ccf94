import type { Clock, TimerHandle } from './clock.ts'

/** The longest timer of Node.js, 31 bits of milliseconds. A longer one would fire at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1

/** One timer, set to one time after another. Times are of the monotonic clock. Infinity means never. */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: (at: number) => void
  #timer: TimerHandle | undefined
  #at: number = Number.POSITIVE_INFINITY

  /**
   * @param ring is called at the set time, but after 24 days at the latest, so it must check if the time has come. It receives the time that
   * was set
   */
  constructor(clock: Clock, ring: (at: number) => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings at this time instead of any time set before. */
  set(at: number): void {
    if (at === this.#at) return
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#at = at
    this.#timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = undefined
        this.#at = Number.POSITIVE_INFINITY
        this.#ring(at)
      },
      Math.min(LONGEST_TIMER, Math.max(0, at - this.#clock.monotonic())),
    )
  }

  /** The time at which it rings. */
  get at(): number {
    return this.#at
  }

  /** Rings at this time, unless an earlier time is set. */
  setBy(at: number): void {
    if (at < this.#at) this.set(at)
  }

  stop(): void {
    this.set(Number.POSITIVE_INFINITY)
  }
}
