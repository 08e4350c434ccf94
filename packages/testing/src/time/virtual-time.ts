import { isLoadingCode } from '@weir/core/sync'
import { EventQueue, type QueuedEvent } from './event-queue.ts'

/** The wall clock at moment 0 unless an option sets another: a whole number of hours since the Unix epoch. */
const EPOCH = 1_000_800_000

// Read when the module loads, so that a test runner's fake timers don't affect the simulator's promises.
const nextTurn = setImmediate
// A browser has no `process`.
const nextTick: (run: () => void) => void = globalThis.process?.nextTick ?? setImmediate
/** After this many turns `drained` lets the event loop run once. */
const TURNS = 500

/**
 * Time that passes only on demand. Events run in order of their time. Between two events all continuations of settled promises run,
 * so that code with promises behaves the same in every run.
 */
export class VirtualTime {
  /** The Unix time at moment 0, in milliseconds. A correct wall clock shows `epoch + now`. */
  readonly epoch: number
  readonly #queue = new EventQueue()
  #now: number
  #touched = false
  #drained = 0

  /** @param start the moment at which this time line begins, in milliseconds */
  constructor(start = 0, epoch: number = EPOCH) {
    this.#now = start
    this.epoch = epoch
  }

  /** Milliseconds on this time line. */
  get now(): number {
    return this.#now
  }

  /** The time of the next event. `Infinity` if nothing is planned. */
  get nextAt(): number {
    return this.#queue.nextAt
  }

  /**
   * Plans an event. An event in the past runs now, after the events that are already due.
   *
   * @param settles false if the event certainly settles no promise, so that no turn of the event loop is spent on it
   */
  at(moment: number, run: () => void, settles = true): QueuedEvent {
    this.#touched = true
    return this.#queue.add(Math.max(moment, this.#now), run, settles)
  }

  cancel(event: QueuedEvent): void {
    this.#queue.remove(event)
  }

  /** Records that there may be promises to settle. */
  touch(): void {
    this.#touched = true
  }

  /** Whether an event was planned since the last call, so that there may be promises to settle. */
  takeTouched(): boolean {
    const touched = this.#touched
    this.#touched = false
    return touched
  }

  /** Lets time pass without running anything. The moment must not be after the next event. */
  pass(moment: number): void {
    this.#now = moment
  }

  /** Runs the next event. Returns true if it may have settled promises: then await `settled()`. */
  step(): boolean {
    const event = this.#queue.take()
    if (event === undefined) return false
    this.#now = event.at
    this.#touched = false
    event.run()
    return event.settles || this.takeTouched()
  }

  /** Runs the continuations of all settled promises. Waits for code that a throttler is loading. */
  async settled(): Promise<void> {
    do await new Promise<void>((resolve) => nextTurn(resolve))
    while (isLoadingCode())
  }

  /**
   * Like `settled`, but waits for promises only, mostly without a turn of the event loop, which takes longer than most events. Now
   * and then it waits for a turn, so that a test runner gets messages from the process, and loaded code arrives.
   */
  drained(): Promise<void> {
    this.#drained = (this.#drained + 1) % TURNS
    return new Promise((resolve) => {
      if (this.#drained === 0) nextTurn(resolve)
      else nextTick(resolve)
    })
  }

  /** Runs all events up to and including a moment, and stops there. */
  async runUntil(moment: number): Promise<void> {
    await this.settled()
    while (this.#queue.nextAt <= moment) {
      if (this.step()) await this.settled()
    }
    if (moment > this.#now) this.#now = moment
  }
}
