import type { Clock, TimerHandle } from '../time/clock.ts'
import type { RulesSource } from './source.ts'

/** The first pause after a failure, in milliseconds. Each further pause is twice as long. */
const FIRST_RETRY = 250
/** The longest pause, in milliseconds, unless the source's interval is shorter. */
const LONGEST_RETRY = 10_000
/** After this number of reads, a text is used even if it still changes. */
const MOST_LOOKS = 20

/** Receives the texts of a source. */
export interface ReadingListener {
  /** Whether the texts are no longer needed. */
  closed(): boolean
  text(text: string): Promise<void>
  away(why: unknown): void
}

/** Reads a source: at the start, when it reports a change, and regularly. It never reads twice at once. */
export class Reading {
  readonly #source: RulesSource
  readonly #clock: Clock
  readonly #timeout: number
  readonly #listener: ReadingListener
  #unwatch: () => void = () => {}
  #timer: TimerHandle
  #running: Promise<void> | undefined
  /** Whether the source reported a change during a read. */
  #again = false
  #failures = 0
  #stopped = false
  /** Ends the current wait for an answer or a pause. */
  #giveUp: () => void = () => {}

  /** @param timeout milliseconds that one answer may take */
  constructor(source: RulesSource, clock: Clock, timeout: number, listener: ReadingListener) {
    this.#source = source
    this.#clock = clock
    this.#timeout = timeout
    this.#listener = listener
  }

  /** Resolves after the first read. */
  start(): Promise<void> {
    try {
      this.#unwatch = this.#source.watch?.(() => this.#read()) ?? this.#unwatch
    } catch {
      // The source is also read regularly.
    }
    return this.#read()
  }

  /** Resolves when the last text has been processed. It does not wait for a pending answer. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#clock.clearTimeout(this.#timer)
    this.#giveUp()
    try {
      this.#unwatch()
    } catch {
      // Later notifications have no effect.
    }
    await this.#running
  }

  #read(): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    if (this.#running !== undefined) this.#again = true
    this.#running ??= this.#readNow().finally(() => {
      this.#running = undefined
      if (this.#stopped) return
      if (this.#listener.closed()) {
        void this.stop()
        return
      }
      if (this.#again) {
        this.#again = false
        void this.#read()
        return
      }
      this.#clock.clearTimeout(this.#timer)
      this.#timer = this.#clock.setTimeout(() => void this.#read(), this.#untilNext())
    })
    return this.#running
  }

  #untilNext(): number {
    const { interval } = this.#source
    return this.#failures === 0 ? interval : Math.min(interval, LONGEST_RETRY, FIRST_RETRY * 2 ** (this.#failures - 1))
  }

  async #readNow(): Promise<void> {
    try {
      const text = await this.#rested()
      if (this.#stopped) return
      this.#failures = 0
      await this.#listener.text(text)
    } catch (error) {
      if (this.#stopped) return
      this.#failures++
      this.#listener.away(error)
    }
  }

  /** Reads until the text no longer changes. */
  async #rested(): Promise<string> {
    const { settle = 0 } = this.#source
    let text = await this.#ask()
    for (let looks = 0; settle > 0 && looks < MOST_LOOKS && !this.#stopped; looks++) {
      await this.#pause(settle)
      if (this.#stopped) return text
      const next = await this.#ask()
      if (next === text) return text
      text = next
    }
    return text
  }

  #pause(length: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(resolve, length)
      this.#giveUp = () => {
        this.#clock.clearTimeout(timer)
        resolve()
      }
    })
  }

  async #ask(): Promise<string> {
    const abort = new AbortController()
    let timer: TimerHandle
    const ended = new Promise<never>((_, reject) => {
      const end = (why: string) => {
        reject(new Error(why))
        abort.abort()
      }
      timer = this.#clock.setTimeout(() => end(`it did not answer within ${this.#timeout} ms`), this.#timeout)
      this.#giveUp = () => end('it was cancelled')
    })
    try {
      const text = await Promise.race([this.#source.read(abort.signal), ended])
      if (text === undefined) throw new Error('it contains no rules')
      return text
    } finally {
      this.#clock.clearTimeout(timer)
    }
  }
}
