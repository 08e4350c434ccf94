import type { Clock, TimerHandle } from './clock.ts'
import { loadCode } from './load-code.ts'

type Timers = Pick<Clock, 'setTimeout' | 'clearTimeout'>

/** Pause before the second attempt, in milliseconds. Each further pause is twice as long, up to the longest. */
const FIRST_PAUSE = 100
const LONGEST_PAUSE = 10_000

/**
 * A value that is loaded when it is first needed. A failure doesn't last: after a pause the next attempt follows, until one succeeds. Only
 * a loaded value is kept, never a rejected promise.
 */
export class Retried<T extends object> {
  /**
   * The loaded value. It stays undefined until the callers that waited for it have continued, so that a new caller doesn't overtake them.
   */
  value: T | undefined = undefined
  /** Whether an attempt has failed and none has succeeded since. */
  failing = false
  readonly #load: () => Promise<T>
  readonly #clock: Timers
  readonly #failed: (cause: unknown, first: boolean) => void
  readonly #waiting = new Set<() => void>()
  /** The running attempt, as `load` returns it. */
  attempt: Promise<T | undefined> | undefined
  #timer: TimerHandle
  #pause = FIRST_PAUSE
  #stopped = false

  /** @param failed called after each failure. `first` marks the failure of the first attempt, which is worth a warning */
  constructor(load: () => Promise<T>, clock: Timers, failed: (cause: unknown, first: boolean) => void = () => {}) {
    this.#load = load
    this.#clock = clock
    this.#failed = failed
  }

  /**
   * Starts an attempt unless one is running, or a pause.
   *
   * @returns the loaded value, or undefined if the attempt fails or, at once, during a pause. Never rejects
   */
  load(): Promise<T | undefined> {
    if (this.value !== undefined || this.#timer !== undefined) return Promise.resolve(this.value)
    this.#stopped = false
    if (this.attempt === undefined) {
      this.attempt = this.#try()
      // Callers that wait for the attempt continue between this callback and the microtask.
      void this.attempt.then((loaded) => queueMicrotask(() => this.#loaded(loaded)))
    }
    return this.attempt
  }

  /** As `load`, but also waits for later attempts, up to this many milliseconds. Waiting callers continue in the order of their calls. */
  within(milliseconds: number): Promise<T | undefined> {
    if (this.value !== undefined) return Promise.resolve(this.value)
    return new Promise((resolve) => {
      const done = (): void => {
        this.#clock.clearTimeout(timer)
        leave()
        resolve(this.value)
      }
      const timer = this.#clock.setTimeout(done, milliseconds)
      const leave = this.whenLoaded(done)
    })
  }

  /**
   * Starts an attempt as `load` does, and calls a function as soon as one succeeds, or once none will follow.
   *
   * @returns a function that cancels this
   */
  whenLoaded(done: () => void): () => void {
    this.#waiting.add(done)
    if (this.value === undefined) void this.load()
    else done()
    return () => this.#waiting.delete(done)
  }

  /** Makes no further attempt until `load` is called again. */
  stop(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    this.#stopped = true
    for (const done of [...this.#waiting]) done()
  }

  async #try(): Promise<T | undefined> {
    try {
      return await loadCode(this.#load)
    } catch (cause) {
      const first = !this.failing
      this.failing = true
      if (!this.#stopped) {
        this.#timer = this.#clock.setTimeout(() => {
          this.#timer = undefined
          void this.load()
        }, this.#pause)
      }
      this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE)
      this.#failed(cause, first)
      return undefined
    }
  }

  #loaded(loaded: T | undefined): void {
    this.attempt = undefined
    if (loaded === undefined) return
    this.value = loaded
    this.failing = false
    for (const done of [...this.#waiting]) done()
  }
}
