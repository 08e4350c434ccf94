import type { Clock, TimerHandle } from '../time/clock.ts'
import type { RulesSource } from './source.ts'

/** The first pause after a failure, in milliseconds; each further one is twice as long. */
const FIRST_RETRY = 250
/** The longest one, unless the source is read more rarely anyway. */
const LONGEST_RETRY = 10_000
/** Text that never rests is taken for what it is after so many looks. */
const MOST_LOOKS = 20

/** The receiver of texts that are read. */
export interface ReadingListener {
  /** Whether nobody wants to know any more. */
  closed(): boolean
  text(text: string): Promise<void>
  away(why: unknown): void
}

/** Reads a source: at first, when it tells of a change, and regularly. Never twice at once. */
export class Reading {
  readonly #source: RulesSource
  readonly #clock: Clock
  readonly #timeout: number
  readonly #listener: ReadingListener
  #unwatch: () => void = () => {}
  #timer: TimerHandle
  #running: Promise<void> | undefined
  /** Whether the source told of a change while it was read. */
  #again = false
  #failures = 0
  #stopped = false
  /** Ends what is waited for: an answer, or a pause. */
  #giveUp: () => void = () => {}

  /** @param timeout milliseconds that one answer may take */
  constructor(source: RulesSource, clock: Clock, timeout: number, listener: ReadingListener) {
    this.#source = source
    this.#clock = clock
    this.#timeout = timeout
    this.#listener = listener
  }

  /** Resolves when it was read once. */
  start(): Promise<void> {
    try {
      this.#unwatch = this.#source.watch?.(() => this.#read()) ?? this.#unwatch
    } catch {
      // It is read regularly.
    }
    return this.#read()
  }

  /** Resolves when what was read is dealt with. An answer that is under way is not waited for. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#clock.clearTimeout(this.#timer)
    this.#giveUp()
    try {
      this.#unwatch()
    } catch {
      // Nobody is told of anything any more.
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
      this.#giveUp = () => end('nobody waits for it any more')
    })
    try {
      const text = await Promise.race([this.#source.read(abort.signal), ended])
      if (text === undefined) throw new Error('it holds no rules')
      return text
    } finally {
      this.#clock.clearTimeout(timer)
    }
  }
}
