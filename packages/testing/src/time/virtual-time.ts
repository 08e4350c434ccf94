import { isLoadingCode } from '@weir/core/sync'
import { EventQueue, type QueuedEvent } from './event-queue.ts'

/** The wall clock at moment 0 unless an option sets another: a whole number of hours since the Unix epoch. */
const EPOCH = 1_000_800_000

// Taken at load: a test runner's fake timers must not get between the simulator and its promises.
const nextTurn = setImmediate
// In a browser there is none.
const nextTick: (run: () => void) => void = globalThis.process?.nextTick ?? setImmediate
/** After this many turns `drained` lets the event loop run once. */
const TURNS = 500

/**
 * Time that passes only when it is told to. Events run in order of their time; between two of them every promise
 * that was settled gets its continuations run, so that code with promises behaves the same in every run.
 */
export class VirtualTime {
  /** Milliseconds since the Unix epoch at moment 0: what a right wall clock shows is `epoch + now`. */
  readonly epoch: number
  readonly #queue = new EventQueue()
  #now: number
  #touched = false
  #drained = 0

  /** @param start milliseconds on this time line at which it begins */
  constructor(start = 0, epoch: number = EPOCH) {
    this.#now = start
    this.epoch = epoch
  }

  /** Milliseconds on this time line. */
  get now(): number {
    return this.#now
  }

  /** When the next event is due; `Infinity` when nothing is planned. */
  get nextAt(): number {
    return this.#queue.nextAt
  }

  /**
   * Plans an event. One in the past runs now, after what is due already.
   *
   * @param settles false when the event certainly settles no promise: then no turn of the event loop is spent on it
   */
  at(moment: number, run: () => void, settles = true): QueuedEvent {
    this.#touched = true
    return this.#queue.add(Math.max(moment, this.#now), run, settles)
  }

  cancel(event: QueuedEvent): void {
    this.#queue.remove(event)
  }

  /** Says that there may be promises to settle. */
  touch(): void {
    this.#touched = true
  }

  /** Whether anything was planned since it was last asked: then there may be promises to settle. */
  takeTouched(): boolean {
    const touched = this.#touched
    this.#touched = false
    return touched
  }

  /** Lets time pass without running anything; the moment must not lie behind the next event. */
  pass(moment: number): void {
    this.#now = moment
  }

  /** Runs the next event. Returns true when promises may have been settled by it: then await `settled()`. */
  step(): boolean {
    const event = this.#queue.take()
    if (event === undefined) return false
    this.#now = event.at
    this.#touched = false
    event.run()
    return event.settles || this.takeTouched()
  }

  /** Runs the continuations of all promises that are settled. Code that a throttler loads arrives before. */
  async settled(): Promise<void> {
    do await new Promise<void>((resolve) => nextTurn(resolve))
    while (isLoadingCode())
  }

  /**
   * As `settled`, where nothing but promises is waited for: mostly without a turn of the event loop, which takes longer than most events.
   * A turn now and then, so that a test runner hears of the process, and what is loaded arrives.
   */
  drained(): Promise<void> {
    this.#drained = (this.#drained + 1) % TURNS
    return new Promise((resolve) => {
      if (this.#drained === 0) nextTurn(resolve)
      else nextTick(resolve)
    })
  }

  /** Runs all events up to and including a moment, and stays there. */
  async runUntil(moment: number): Promise<void> {
    await this.settled()
    while (this.#queue.nextAt <= moment) {
      if (this.step()) await this.settled()
    }
    if (moment > this.#now) this.#now = moment
  }
}
