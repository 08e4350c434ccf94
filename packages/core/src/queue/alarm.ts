import type { Clock, TimerHandle } from '../time/clock.ts'

/** Timers of Node.js hold 31 bits of milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/** One timer, set to one time after another. */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #timer: TimerHandle | undefined
  #at: number = Number.POSITIVE_INFINITY

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** @param at on the monotonic clock; infinite for never */
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
        this.#ring()
      },
      Math.min(LONGEST_TIMER, Math.max(0, at - this.#clock.monotonic())),
    )
  }
}
